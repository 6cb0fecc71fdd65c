"""Trees that compare distances: is x closer to a or to b?"""
