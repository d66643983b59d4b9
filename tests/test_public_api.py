"""The promised names are there, and asking for the package costs nothing."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import fot

MODULES = sorted(module.name for module in pkgutil.walk_packages(fot.__path__, "fot.") if module.name != "fot.__main__")


def test_the_promised_names() -> None:
    assert fot.__all__ == sorted(fot.__all__)
    for name in fot.__all__:
        assert getattr(fot, name).__name__ == name
    assert set(fot.__all__) <= set(dir(fot))


def test_a_name_that_is_not_promised() -> None:
    with pytest.raises(AttributeError, match="'fot' has no attribute 'Bogus'"):
        fot.Bogus  # noqa: B018


def test_importing_fot_imports_nothing_else_of_fot() -> None:
    code = "import sys, fot; print(*(name for name in sys.modules if name.startswith('fot.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_offers(name: str) -> None:
    """`__all__` names what is there, each once; packages without names of their own, and programs, have none."""
    module = importlib.import_module(name)
    offered = getattr(module, "__all__", [])
    assert offered or hasattr(module, "__path__") or hasattr(module, "main")
    assert sorted(offered) == sorted(set(offered))
    assert all(hasattr(module, name) for name in offered)


def test_the_core_is_standard_library_only() -> None:
    """The contracts of the layers can only name modules; this finds any."""
    code = """
import importlib, pkgutil, sys
before = set(sys.modules)  # site may have loaded something already
import fot.core
for module in pkgutil.walk_packages(fot.core.__path__, "fot.core."):
    importlib.import_module(module.name)
print(*{name.partition(".")[0] for name in set(sys.modules) - before})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) - sys.stdlib_module_names == {"fot"}
