"""Training and prediction on an NVIDIA GPU, through CuPy. Nothing outside of this package imports CuPy."""
