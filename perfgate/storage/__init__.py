"""The only room that reads or writes documents."""
