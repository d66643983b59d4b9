"""Who competes: every method as a policy, and the specs that name them.

`parse("fot:checkpoints=6000/10000/14000,keep=0.67")` gives a `Spec`; `spec.build(Context(k=32))` a fresh policy for
one problem. Parameters are the fields of the method's plan, a frozen dataclass; nothing else defines them.
"""

from fot.methods.spec import METHODS, Context, Method, Prepared, Recorded, Spec, methods, parse

__all__ = ["METHODS", "Context", "Method", "Prepared", "Recorded", "Spec", "methods", "parse"]
