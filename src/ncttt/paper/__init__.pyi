from .configurations import write_configurations
from .items import ITEMS, Item, chosen_items
from .outline import missing, outline
from .plan import Plan, read_plan
from .run import Result, reproduce
from .settings import Settings

__all__ = [
    "ITEMS",
    "Item",
    "Plan",
    "Result",
    "Settings",
    "chosen_items",
    "missing",
    "outline",
    "read_plan",
    "reproduce",
    "write_configurations",
]
