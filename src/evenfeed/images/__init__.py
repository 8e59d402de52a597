"""Image functions: decoding and encoding files, resizing, cropping, colours and augmentation."""
