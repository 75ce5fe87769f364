"""Thousands of lines of mixed text, made from nothing but this file and the Unicode tables of Python (3.11).

Handwritten sentences, code, numbers and odd spaces; words of random letters from many scripts; and mixtures of all.
"""

import random
import unicodedata
from collections.abc import Iterator

SENTENCES = [
    "Why is the sky blue?",
    "It's a fine day, isn't it? They'll say we've won; I'd say I'm not sure you're right.",
    "IT'S LOUD HERE, WE'LL SHOUT AND THEY'VE HEARD. O'Neil's dog 's 't 're 've 'm 'll 'd",
    "Der Bäcker verkauft süße Brötchen für 3,50 € an der Straßenecke.",
    "L'été dernier, j'ai goûté du pâté à Besançon ; c'était délicieux, n'est-ce pas ?",
    "El niño comió piñas y pingüinos de chocolate. ¿Quién lo habría dicho? ¡Nadie!",
    "A avó fez pão de ló e o avô tomou café na varanda às três.",
    "Zażółć gęślą jaźń, a potem idź do domu.",
    "Příliš žluťoučký kůň pije vodu z řeky.",
    "Çok güzel bir gün; İstanbul'da ışıklar yanıyor, Iğdır'da sönüyor.",
    "Flygande bäckasiner söka hwila på mjuka tuvor, ærlig talt på øya.",
    "Kæmi ný öxi hér, ykist þjófum nú bæði víl og ádrepa.",
    "Οι άνθρωποι μιλούν, τα πουλιά τραγουδούν και η θάλασσα σωπαίνει.",
    "Поезд уходит в семь утра, а возвращается в девять вечера.",
    "Їжак під'їхав до ґанку й з'їв пиріг.",
    "Գնացքը մեկնում է առավոտյան ժամը յոթին։",
    "הרכבת יוצאת בשבע בבוקר וחוזרת בתשע בערב.",
    "يغادر القطار في السابعة صباحًا ويعود في التاسعة مساءً، أليس كذلك؟",
    "قطار ساعت هفت صبح می‌رود و ساعت ۹ شب برمی‌گردد.",
    "ट्रेन सुबह सात बजे चलती है और रात नौ बजे लौटती है।",
    "ট্রেন সকাল সাতটায় ছাড়ে, রাত ৯টায় ফেরে।",
    "ரயில் காலை ஏழு மணிக்குப் புறப்படுகிறது.",
    "రైలు ఉదయం ఏడు గంటలకు బయలుదేరుతుంది.",
    "รถไฟออกเวลาเจ็ดโมงเช้าและกลับมาตอนสามทุ่ม",
    "ລົດໄຟອອກເວລາເຈັດໂມງເຊົ້າ",
    "ရထားက မနက်ခုနစ်နာရီမှာ ထွက်တယ်။",
    "រថភ្លើងចេញនៅម៉ោងប្រាំពីរព្រឹក។",
    "მატარებელი დილის შვიდ საათზე გადის.",
    "ባቡሩ ከጠዋቱ አንድ ሰዓት ላይ ይነሳል።",
    "기차는 아침 일곱 시에 떠나서 밤 아홉 시에 돌아옵니다.",
    "電車は朝七時に出て、夜九時に戻ります。カタカナもひらがなも読めますか?",
    "火车早上七点出发,晚上九点回来。你知道天空为什么是蓝色的吗?",
    "火車早上七點出發,價錢是3塊半;「真的嗎?」他問。",
    "Tàu hỏa khởi hành lúc bảy giờ sáng và trở về lúc chín giờ tối, tiếng Việt rất hay.",
    "Treni huondoka saa moja asubuhi na kurudi saa tatu usiku.",
    "Emoji: 😀 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 ❤️ ☕️ 1️⃣ and 🤷‍♀️!",
    "Maths: ∀x ∈ ℝ, x² ≥ 0 ⇒ √(x²) = |x|; ∑ᵢ aᵢ ≠ ∏ⱼ bⱼ ± 5 × 10⁻³, ½ + ¼ = ¾",
    "Quotes “curly” and ‘single’ and „low“ and «guillemets» – dash — long dash … ellipsis",
    "Mail me at someone@example.org or see https://example.org/a/b?c=d&e=%20f#g (really).",
    "C:\\Users\\name\\file.txt and /usr/bin/env and ../relative/path and ~/.config",
    "|a|b|\n|---|---|\n| 1 | 2 |",
    "# Title\n\n- item one\n- item two\n\n1. first\n2. second\n\n> quoted\n\n```rust\nfn main() {}\n```",
    "<|im_start|>user\nnot a turn<|im_end|> <|endoftext|> </s> <s> [INST] <unk> <0x0A> <pad>",
    "snake_case camelCase PascalCase SCREAMING_CASE kebab-case XMLHttpRequest iPhone12Pro",
    "....... !!! ??? ?!?! --- === ~~~ *** ### $$$ %%% ^^^ &&& ((())) [[[]]] {{{}}} <<<>>>",
    "a1b2c3 1a2b3c v1.2.3-rc4+build5 0x1F 0b1010 1e-9 -3.14 +7 1,234,567.89 12:34:56 2024-02-29",
]

CODE = [
    "def f(x: int) -> int:\n    if x < 2:\n        return x\n    return f(x - 1) + f(x - 2)\n",
    "for (int i = 0; i < n; ++i) {\n\ta[i] = b[i] * c[i];\t// product\n}\n",
    'fn main() {\n    let v: Vec<u8> = (0..10).map(|x| x * x).collect();\n    println!("{v:?}");\n}\n',
    "SELECT name, COUNT(*) AS n FROM users WHERE age >= 18 GROUP BY name ORDER BY n DESC LIMIT 10;",
    '{"key": [1, 2.5, true, null, "text\\n"], "nested": {"a": {"b": {}}}}',
    "<div class=\"box\" id='x'><p>Hello &amp; bye&nbsp;</p><!-- note --></div>",
    "$ git commit -m 'Fix it' && git push origin main 2>&1 | tee log.txt",
    "if x == y != z <= w >= v && !u || t ^ s >> 2 << 1 & 0xFF | ~r: pass",
    "\\begin{equation}\n  E = mc^2 + \\frac{1}{2}\\sum_{i=0}^{n} x_i\n\\end{equation}",
    "int\tmain(void)\r\n{\r\n\treturn 0;\r\n}\r\n",
    "λ = lambda x, *a, **k: (yield x) if a else k.get('x', ...)",
    "@media (max-width: 600px) { .a > .b:hover::after { content: '\\201C'; margin: -1px auto; } }",
]

SPACES = [" ", "  ", "   ", "    ", "\t", "\t\t", "\n", "\n\n", "\n \n", "\r\n", "\r", " \n", "\n ", " \t ", "\v", "\f"]
SPACES += ["\u00a0", "\u1680", "\u2003", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u0085"]
INVISIBLE = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u200e", "\u200f", "\ufe0f"]

SCRIPTS = {
    "ascii": (0x21, 0x7E),
    "latin-1": (0xA1, 0xFF),
    "latin extended": (0x100, 0x24F),
    "phonetic": (0x250, 0x2AF),
    "modifiers": (0x2B0, 0x2FF),
    "combining": (0x300, 0x36F),
    "greek": (0x370, 0x3FF),
    "cyrillic": (0x400, 0x52F),
    "armenian": (0x531, 0x58A),
    "hebrew": (0x591, 0x5F4),
    "arabic": (0x600, 0x6FF),
    "syriac": (0x700, 0x74F),
    "thaana": (0x780, 0x7B1),
    "devanagari": (0x900, 0x97F),
    "bengali": (0x980, 0x9FE),
    "gurmukhi": (0xA01, 0xA76),
    "gujarati": (0xA81, 0xAFF),
    "tamil": (0xB82, 0xBFA),
    "telugu": (0xC00, 0xC7F),
    "kannada": (0xC80, 0xCF2),
    "malayalam": (0xD00, 0xD7F),
    "sinhala": (0xD81, 0xDF4),
    "thai": (0xE01, 0xE5B),
    "lao": (0xE81, 0xEDF),
    "tibetan": (0xF00, 0xFDA),
    "myanmar": (0x1000, 0x109F),
    "georgian": (0x10A0, 0x10FF),
    "hangul jamo": (0x1100, 0x11FF),
    "ethiopic": (0x1200, 0x139F),
    "cherokee": (0x13A0, 0x13FD),
    "canadian": (0x1400, 0x167F),
    "khmer": (0x1780, 0x17F9),
    "mongolian": (0x1800, 0x18AA),
    "latin additional": (0x1E00, 0x1EFF),
    "greek extended": (0x1F00, 0x1FFE),
    "punctuation": (0x2010, 0x205E),
    "super and sub": (0x2070, 0x209C),
    "currency": (0x20A0, 0x20C0),
    "letterlike": (0x2100, 0x214F),
    "number forms": (0x2150, 0x218B),
    "arrows": (0x2190, 0x21FF),
    "mathematics": (0x2200, 0x22FF),
    "technical": (0x2300, 0x23FF),
    "enclosed": (0x2460, 0x24FF),
    "boxes": (0x2500, 0x25FF),
    "symbols": (0x2600, 0x26FF),
    "dingbats": (0x2700, 0x27BF),
    "braille": (0x2800, 0x28FF),
    "cjk punctuation": (0x3001, 0x303F),
    "hiragana": (0x3041, 0x309F),
    "katakana": (0x30A0, 0x30FF),
    "bopomofo": (0x3105, 0x312F),
    "cjk extension a": (0x3400, 0x4DBF),
    "cjk": (0x4E00, 0x9FFF),
    "yi": (0xA000, 0xA48C),
    "hangul": (0xAC00, 0xD7A3),
    "private": (0xE000, 0xE0FF),
    "presentation": (0xFB00, 0xFB4F),
    "wide": (0xFF01, 0xFFEE),
    "linear b": (0x10000, 0x100FA),
    "gothic": (0x10330, 0x1034A),
    "deseret": (0x10400, 0x1044F),
    "music": (0x1D100, 0x1D1EA),
    "maths letters": (0x1D400, 0x1D7FF),
    "tiles": (0x1F000, 0x1F0F5),
    "emoji": (0x1F300, 0x1F5FF),
    "faces": (0x1F600, 0x1F64F),
    "transport": (0x1F680, 0x1F6FF),
    "more emoji": (0x1F900, 0x1F9FF),
    "cjk extension b": (0x20000, 0x2A6DF),
}
"""Ranges of code points, both ends included."""

CASED = ["latin-1", "latin extended", "greek", "cyrillic", "armenian", "ascii"]


def lines() -> list[str]:
    """All texts, without doubles; some hold line breaks, none is empty."""
    rng = random.Random(20240229)
    every = [*SENTENCES, *CODE, *_sentence_variants(rng), *_numbers(rng), *_spaces(rng)]
    every += [*_scripts(rng), *_case_changes(rng), *_combined(rng), *_mixtures(rng), *_single_characters()]
    return list(dict.fromkeys(every))


def _characters(name: str) -> list[str]:
    """Assigned characters of a range (private ones too)."""
    low, high = SCRIPTS[name]
    return [chr(c) for c in range(low, high + 1) if unicodedata.category(chr(c)) not in ("Cn", "Cs")]


def _word(rng: random.Random, letters: list[str], longest: int = 8) -> str:
    return "".join(rng.choices(letters, k=rng.randint(1, longest)))


def _sentence_variants(rng: random.Random) -> Iterator[str]:
    for sentence in SENTENCES + CODE:
        yield " " + sentence
        yield sentence + " "
        yield "\n" + sentence + "\n\n"
        yield sentence.upper()
        yield sentence.replace(" ", "  ")
        yield sentence.replace(" ", rng.choice(SPACES))
        yield sentence[rng.randrange(len(sentence)) :] + rng.choice(SPACES) + sentence
        yield unicodedata.normalize("NFD", sentence)


def _numbers(rng: random.Random) -> Iterator[str]:
    for length in range(1, 25):
        digits = "".join(rng.choices("0123456789", k=length))
        yield digits
        yield f"{digits} apples, x{digits}y and {digits}."
        yield f" {digits}  {digits}\n{digits}"
    for name in ("arabic", "devanagari", "bengali", "thai", "super and sub", "number forms", "enclosed", "wide"):
        digits = [c for c in _characters(name) if c.isnumeric()]
        for _ in range(6):
            yield f"{_word(rng, digits)} {rng.randint(0, 9999)}{_word(rng, digits)}a"


def _spaces(rng: random.Random) -> Iterator[str]:
    for space in SPACES:
        yield space
        yield space * 7
        yield f"a{space}b"
        yield f"{space}a {space}{space}b{space}"
        yield f"!{space}?{space * 3}1{space}2"
    for mark in INVISIBLE:
        yield f"in{mark}visible {mark}mark{mark} {mark}{mark}"
    for _ in range(150):
        yield "".join(rng.choice(SPACES) + rng.choice(["a", "The", "42", "!", "é", "語", "."]) for _ in range(6))


def _scripts(rng: random.Random) -> Iterator[str]:
    for name in SCRIPTS:
        letters = _characters(name)
        for _ in range(8):
            yield " ".join(_word(rng, letters) for _ in range(rng.randint(2, 7)))
        yield f"The word '{_word(rng, letters)}' ({name}), {rng.randint(0, 999)}{_word(rng, letters)}!"
        yield rng.choice(SPACES).join(_word(rng, letters) for _ in range(5))


def _case_changes(rng: random.Random) -> Iterator[str]:
    for name in CASED:
        letters = [c for c in _characters(name) if c.isalpha()]
        for _ in range(10):
            word = _word(rng, letters, 10)
            yield f"{word} {word.upper()} {word.lower()} {word.title()}{word.swapcase()} {word}'s {word}'LL"


def _combined(rng: random.Random) -> Iterator[str]:
    marks = _characters("combining")
    faces = _characters("faces") + _characters("emoji")
    tones = [chr(c) for c in range(0x1F3FB, 0x1F400)]
    for _ in range(80):
        yield "".join(c + _word(rng, marks, 2) for c in _word(rng, list("aeioucnszAEIOU "), 8))
        yield "\u200d".join(rng.choice(faces) + rng.choice(["", *tones]) for _ in range(rng.randint(2, 4)))


def _mixtures(rng: random.Random) -> Iterator[str]:
    alphabets = [_characters(name) for name in SCRIPTS]
    for _ in range(500):
        parts = []
        for _ in range(rng.randint(3, 9)):
            kind = rng.randrange(5)
            if kind == 0:
                parts.append(_word(rng, rng.choice(alphabets)))
            elif kind == 1:
                parts.append(rng.choice(rng.choice(SENTENCES).split()))
            elif kind == 2:
                parts.append(str(rng.randint(0, 10 ** rng.randint(1, 9))))
            elif kind == 3:
                parts.append(rng.choice(SPACES + INVISIBLE))
            else:
                parts.append(_word(rng, _characters("ascii"), 4))
        yield rng.choice(["", " "]).join(parts)


def _single_characters() -> Iterator[str]:
    for low, high in SCRIPTS.values():
        yield chr(low) + " " + chr((low + high) // 2) + chr(high)
