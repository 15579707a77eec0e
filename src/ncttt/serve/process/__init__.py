"""The worker in a process of its own: HTTP takes no turns of the interpreter from the thread that owns the model."""
