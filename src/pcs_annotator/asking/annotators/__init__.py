"""From a task and a text to messages, and from a reply to a label."""
