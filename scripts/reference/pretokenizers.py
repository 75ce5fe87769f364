"""How byte-level BPE tokenizers cut a text into words before merging, by the names that GGUF files use.

Each entry is a fact of the tokenizer.json that the named models are published with; `default` is what llama.cpp does
with a file that names none. A cut is a regular expression whose matches, and the text between them, become pieces;
several cuts apply one after the other.
"""

from dataclasses import dataclass

from tokenizers import Regex, normalizers, pre_tokenizers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_TAIL = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"


def _llama3(digits: str) -> str:
    return rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_TAIL}"


_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_TEKKEN = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*|\p{{N}}"
    rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_TAIL}"
)
# The escaped ones are characters that an editor composing text (NFC) would replace by others.
_DEEPSEEK_LETTERS = (
    "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼ"
    "ℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ"
    "𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃"
)
_DEEPSEEK_LLM = (
    r"[\r\n]",
    rf"\s?[{_DEEPSEEK_LETTERS}]+",
    r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
    r"\s+$",
    "[一-龥ࠀ-一가-퟿]+",
    r"\p{N}+",
)
_DEEPSEEK_V3 = (
    r"\p{N}{1,3}",
    "[一-龥぀-ゟ゠-ヿ]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|" + _TAIL,
)
_DEFAULT = (r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]")


@dataclass(frozen=True)
class PreTokenizer:
    """The cuts, and what else the tokenizer.json of these models says."""

    cuts: tuple[str, ...]
    nfc: bool = False
    """The text is composed (Unicode NFC) first. llama.cpp does not do it."""
    ignore_merges: bool = False
    """A word that is a token by itself is that token, whatever the merges give."""

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        """The cuts, then bytes to letters."""
        cuts = [pre_tokenizers.Split(Regex(cut), "isolated") for cut in self.cuts]
        return pre_tokenizers.Sequence([*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])

    def normalizer(self) -> normalizers.Normalizer | None:
        """What happens to the text before it is cut."""
        return normalizers.NFC() if self.nfc else None


PRE_TOKENIZERS = {
    "default": PreTokenizer(_DEFAULT),
    "gpt-2": PreTokenizer((GPT2,)),
    "smollm": PreTokenizer((r"\p{N}", GPT2)),
    "llama-bpe": PreTokenizer((_llama3(r"\p{N}{1,3}"),), ignore_merges=True),
    "qwen2": PreTokenizer((_llama3(r"\p{N}"),), nfc=True),
    "tekken": PreTokenizer((_TEKKEN,), ignore_merges=True),
    "deepseek-llm": PreTokenizer(_DEEPSEEK_LLM),
    "deepseek-v3": PreTokenizer(_DEEPSEEK_V3),
}
