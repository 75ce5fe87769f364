//! How byte-level vocabularies cut text into words before merging: one row per `tokenizer.ggml.pre` name.
//!
//! The patterns are those of the models' published `tokenizer.json` files.

use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::tokenizer::SplitDelimiterBehavior;

use super::TokenizerError;

/// What a name in `tokenizer.ggml.pre` stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitRules {
    names: &'static [&'static str],
    /// Applied in order; each cuts the pieces left by those before it, so that every match is a piece of its own.
    patterns: &'static [&'static str],
    /// A word that is in the vocabulary is one token, whatever the merges say.
    pub(super) ignore_merges: bool,
    /// Whether a file that does not say so wants a begin token.
    pub(super) adds_begin: bool,
    /// Whether text is brought to Unicode normal form C first.
    pub(super) composes: bool,
}

/// GPT-2's pattern, from its published encoder.
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN35: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEPSEEK_V3: &str = concat!(
    r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"##,
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);
/// Letters of cased scripts, as DeepSeek LLM's `tokenizer.json` lists them. Escaped are those that Unicode composition,
/// which an editor may do, would replace by others.
const DEEPSEEK_LLM_LETTERS: &str = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\x{1f7d}ᾀ-ᾴᾶ-ᾼ\x{1fbe}ῂ-ῄῆ-ῌῐ-\x{1fd3}ῖ-\x{1fdb}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\x{2126}ℨ\x{212a}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+";
const CJK: &str = r"[一-龥ࠀ-一가-퟿]+";

const PLAIN: SplitRules = SplitRules {
    names: &[],
    patterns: &[],
    ignore_merges: false,
    adds_begin: false,
    composes: false,
};

const TABLE: &[SplitRules] = &[
    SplitRules {
        names: &[
            "llama-bpe",
            "llama3",
            "llama-v3",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
        ],
        patterns: &[LLAMA3],
        ignore_merges: true,
        adds_begin: true,
        ..PLAIN
    },
    SplitRules {
        names: &["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"],
        patterns: &[LLAMA3],
        ..PLAIN
    },
    SplitRules {
        names: &["qwen2", "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez"],
        patterns: &[QWEN2],
        composes: true,
        ..PLAIN
    },
    SplitRules { names: &["qwen35"], patterns: &[QWEN35], ..PLAIN },
    SplitRules {
        names: &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"],
        patterns: &[r"\p{N}", GPT2],
        ..PLAIN
    },
    SplitRules {
        names: &["gpt-2", "phi-2", "mpt", "olmo", "modern-bert", "jais", "gigachat", "trillion"],
        patterns: &[GPT2],
        ..PLAIN
    },
    SplitRules {
        names: &["tekken"],
        patterns: &[TEKKEN],
        ignore_merges: true,
        adds_begin: true,
        ..PLAIN
    },
    SplitRules { names: &["gpt-4o", "llama4"], patterns: &[GPT4O], ..PLAIN },
    SplitRules {
        names: &["deepseek-llm"],
        patterns: &[
            r"[\r\n]",
            DEEPSEEK_LLM_LETTERS,
            r"\s?[!-/:-~！-／：-～‘-‟　-。]+",
            r"\s+$",
            CJK,
            r"\p{N}+",
        ],
        ..PLAIN
    },
    SplitRules {
        names: &["deepseek-coder"],
        patterns: &[r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK, r"\p{N}"],
        ..PLAIN
    },
    SplitRules {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm"],
        patterns: &[r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_V3],
        ..PLAIN
    },
    SplitRules {
        names: &["default"],
        patterns: &[r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
        ..PLAIN
    },
];

impl SplitRules {
    /// The rules that `name` stands for; no name is the format's "default".
    pub(super) fn named(name: Option<&str>) -> Result<Self, TokenizerError> {
        let name = name.unwrap_or("default");
        TABLE.iter().find(|rules| rules.names.contains(&name)).copied().ok_or_else(|| {
            TokenizerError::UnknownSplitRules {
                name: name.to_owned(),
                supported: TABLE.iter().flat_map(|rules| rules.names).copied().collect(),
            }
        })
    }

    /// The rules as the `tokenizers` crate applies them, ending with bytes written as characters.
    pub(super) fn pre_tokenizer(&self) -> Result<PreTokenizerWrapper, TokenizerError> {
        let mut steps = self
            .patterns
            .iter()
            .map(|&pattern| {
                let pattern = SplitPattern::Regex(pattern.to_owned());
                Split::new(pattern, SplitDelimiterBehavior::Isolated, false)
                    .map(PreTokenizerWrapper::from)
                    .map_err(TokenizerError::Build)
            })
            .collect::<Result<Vec<_>, _>>()?;
        steps.push(ByteLevel::new(false, false, false).into());
        Ok(Sequence::new(steps).into())
    }
}
