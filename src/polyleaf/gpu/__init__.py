"""Training and prediction on one NVIDIA GPU, through CuPy."""
