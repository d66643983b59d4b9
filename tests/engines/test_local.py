from fot.engines.base import Request, Sampling
from fot.engines.local import prompt_ids
from tests.contract.fake_vllm import Tokenizer

CHAT = ({"role": "user", "content": "ab"},)


class Spelling(Tokenizer):
    """Its template shows what it was given."""

    def apply_chat_template(self, messages: list[dict[str, str]], **options: object) -> str:
        return f"{messages[0]['content']}|{options.get('enable_thinking')}|"


def spelled(request: Request) -> str:
    return "".join("^" if number == 1 else chr(number) for number in prompt_ids(Spelling(), request, "<think>"))


def test_a_text_gets_the_tokenizers_begin_token_and_a_rendered_chat_does_not() -> None:
    assert spelled(Request(id="r.", prompt="ab")) == "^ab"
    assert spelled(Request(id="r.", messages=CHAT)) == "ab|None|"


def test_a_rollout_goes_on_behind_the_tag_that_the_model_began_with() -> None:
    assert spelled(Request(id="r.", prompt="ab", prefix="so")) == "^ab<think>so"
    assert spelled(Request(id="r.", messages=CHAT, prefix="so")) == "ab|None|<think>so"


def test_what_a_chat_template_is_told_reaches_it() -> None:
    told = Sampling(extra={"chat_template_kwargs": {"enable_thinking": False}})
    assert spelled(Request(id="r.", messages=CHAT, sampling=told)) == "ab|False|"
