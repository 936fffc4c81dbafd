"""Files of arrays and a page of JSON: written as a whole, believed once they are checked."""
