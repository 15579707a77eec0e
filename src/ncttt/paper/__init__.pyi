from .items import ITEMS, Item, chosen_items
from .outline import outline
from .plan import Plan, read_plan
from .run import Result, reproduce
from .settings import Settings

__all__ = ["ITEMS", "Item", "Plan", "Result", "Settings", "chosen_items", "outline", "read_plan", "reproduce"]
