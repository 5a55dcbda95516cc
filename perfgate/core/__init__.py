"""What things are, what is decided, what the hardware allows: pure, no files, clock, environment, network, GPU."""
