"""What is fixed at the start: safe by default, from flags and a file."""

from __future__ import annotations

import pytest

from fot.errors import ConfigError
from fot.serve.settings import Settings, load

UP = ("http://127.0.0.1:1/v1",)


def test_loopback_needs_no_key():
    assert Settings(upstream=UP).host == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org", ""])
def test_any_other_host_needs_a_key(host):
    with pytest.raises(ConfigError, match="no API key"):
        Settings(upstream=UP, host=host)
    assert Settings(upstream=UP, host=host, api_key=("long-enough",)).host == host


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"upstream": ()}, "no upstream"),
        ({"upstream": ("localhost:8000",)}, "no URL"),
        ({"upstream": ("embedded",)}, "no URL"),
        ({"upstream": ("http://",)}, "no URL"),
        ({"upstream": ("vlllm+http://127.0.0.1:1",)}, "no URL"),
        ({"api_key": ("short",)}, "API key"),
        ({"api_key": ("new\nline-in-it",)}, "API key"),
        ({"k": 65}, "max_k"),
        ({"k": 0}, "k is 0"),
        ({"max_body_bytes": 0}, "max_body_bytes"),
        ({"queue": -1}, "queue"),
        ({"way": "fast"}, "way"),
        ({"view": "all"}, "view"),
        ({"policy": "fots"}, "Did you mean 'fot'"),
    ],
)
def test_what_cannot_be(wrong, said):
    with pytest.raises(ConfigError, match=said):
        Settings(**{"upstream": UP} | wrong)


def test_an_upstream_may_name_its_kind():
    assert Settings(upstream=("vllm+https://127.0.0.1:1/v1",)).upstream


def test_a_file_and_what_is_given_over_it(tmp_path):
    file = tmp_path / "fot.toml"
    file.write_text('[serve]\nupstream = "http://127.0.0.1:1"\nk = 4\nqueue = 3\n')
    found = load(file, {"k": 8, "port": None, "api_key": ("long-enough",)})
    assert (found.upstream, found.k, found.queue, found.port) == (("http://127.0.0.1:1",), 8, 3, 8080)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("k = 4", "no table"),
        ("[serve]\nkk = 4", "unknown setting"),
        ("[serve]\nupstream = 'x'\nk = 'four'", "Expected `int`"),
        ("[serve", "no TOML"),
    ],
)
def test_files_that_are_wrong(tmp_path, text, said):
    file = tmp_path / "fot.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load(file, {})
    with pytest.raises(ConfigError, match="cannot read"):
        load(tmp_path / "none.toml", {})
