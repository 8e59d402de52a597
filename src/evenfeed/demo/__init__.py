"""The program behind `evenfeed demo`, and the handwritten digits that it learns."""
