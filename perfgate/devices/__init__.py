"""What a session runs on: CUDA through PyCUDA, or recorded sessions."""
