"""GitHub: events, comments, check runs, workflow commands. The only room that imports requests."""
