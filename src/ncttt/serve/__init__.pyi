from .app import create_app
from .client import Client, ServiceError
from .folders import send_folders
from .running import run_service
from .settings import Settings

__all__ = [
    "Client",
    "ServiceError",
    "Settings",
    "create_app",
    "run_service",
    "send_folders",
]
