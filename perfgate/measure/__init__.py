"""The measuring loop and the supervision of launches; knows the Device protocol, no vendor."""
