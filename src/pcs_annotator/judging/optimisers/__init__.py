"""Built-in optimisers by family; each is registered under a name, as plug-ins are."""
