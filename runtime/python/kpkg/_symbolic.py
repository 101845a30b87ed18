"""placeholder"""
def infer(op, values): raise NotImplementedError
