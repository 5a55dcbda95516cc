"""The only room that imports Ray: which GPUs a cluster has, and one task a GPU on it."""
