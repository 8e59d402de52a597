"""What Keras needs to train with evenfeed's datasets and strategies."""
