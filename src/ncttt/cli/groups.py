"""The order of the groups of commands in the help, and which options stand together, whatever command has them."""

GROUPS = ("begin", "train and adapt", "measure", "show", "data", "shell")  # a command's file says which is its own

FEW = 8  # options that need no groups
OTHER_OPTIONS = "options"
RECIPE = "how to train"

OPTIONS = {
    "images": (
        "data",
        "split",
        "held_out",
        "test",
        "images",
        "skip",
        "root",
        "image_size",
        "resize",
        "train_size",
        "mean",
        "std",
        "skip_bad",
        "shuffle",
        "corruption",
        "corruptions",
        "severity",
        "severities",
        "constants",
        "frost",
        "first",
    ),
    "model and method": (
        "network",
        "network_settings",
        "start",
        "whiten",
        "model",
        "checkpoint",
        "layer",
        "method",
        "methods",
        "method_settings",
        "settings",
        "train",
        "trained",
        "one_by_one",
        "adapted",
        "random",
        "confirm",
        "attribution",
        "blend",
    ),
    "adaptation": (
        "protocol",
        "protocols",
        "order",
        "orders",
        "batch_size",
        "batch_sizes",
        "steps",
        "stop",
        "norm",
        "lr",
    ),
    "results": ("out", "trace", "store", "top", "tensorboard", "csv", "json"),
    "running": ("executor", "workers", "address", "cache", "force", "resume", "seed", "seeds", "threads", "device"),
}
