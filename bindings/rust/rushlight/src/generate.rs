//! How texts are generated, and what is told of them.

use std::fmt;
use std::ptr;

use rushlight_sys as sys;

use crate::error;
use crate::llm::{Adapter, Grammar};

/// How texts are generated; [`LanguageModel::default_options`] has what the model's makers
/// recommend.
///
/// [`LanguageModel::default_options`]: crate::LanguageModel::default_options
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GenerateOptions<'a> {
    /// Texts for the prompt; 1 in a session.
    pub n: u32,
    /// Tokens of output; 0: as many as the context has room for.
    pub max_tokens: u64,
    /// The start of the random numbers.
    pub seed: u64,
    /// 0: always the most probable token.
    pub temperature: f32,
    /// The most probable tokens that together are so probable.
    pub top_p: f32,
    /// Tokens at least so probable, relative to the most probable one.
    pub min_p: f32,
    /// Locally typical sampling.
    pub typical_p: f32,
    /// So many most probable tokens; 0: all.
    pub top_k: u32,
    /// 1: no penalty.
    pub repetition_penalty: f32,
    /// 0: no penalty.
    pub presence_penalty: f32,
    /// 0: no penalty.
    pub frequency_penalty: f32,
    /// Texts that end the output, which are not part of it.
    pub stop: Vec<String>,
    /// Tokens that end the output, besides the model's own.
    pub stop_tokens: Vec<i32>,
    /// The model's own end tokens do not end the output.
    pub ignores_end: bool,
    /// The output begins with the prompt.
    pub echoes: bool,
    /// The text has the special tokens.
    pub has_special: bool,
    /// In a full context, half of what follows `keep` tokens is dropped.
    pub shifts: bool,
    /// See `shifts`.
    pub keep: u64,
    /// The most tokens that speculation proposes; 0: none.
    pub guesses: u32,
    /// Whether pieces have log probabilities.
    pub logprobs: bool,
    /// What the text may be; `None`: anything.
    pub grammar: Option<&'a Grammar>,
    /// `None`: the model alone, or the session's own.
    pub adapter: Option<&'a Adapter>,
}

impl<'a> GenerateOptions<'a> {
    pub(crate) fn of(options: &sys::rl_generate_options) -> Self {
        GenerateOptions {
            n: options.n,
            max_tokens: options.max_tokens,
            seed: options.seed,
            temperature: options.temperature,
            top_p: options.top_p,
            min_p: options.min_p,
            typical_p: options.typical_p,
            top_k: options.top_k,
            repetition_penalty: options.repetition_penalty,
            presence_penalty: options.presence_penalty,
            frequency_penalty: options.frequency_penalty,
            stop: Vec::new(),
            stop_tokens: Vec::new(),
            ignores_end: options.ignores_end != 0,
            echoes: options.echoes != 0,
            has_special: options.has_special != 0,
            shifts: options.shifts != 0,
            keep: options.keep,
            guesses: options.guesses,
            logprobs: options.logprobs >= 0,
            grammar: None,
            adapter: None,
        }
    }

    /// A copy that another thread may have: the library refuses handles that are closed meanwhile.
    pub(crate) fn to_request(&self) -> Request {
        let options = sys::rl_generate_options {
            n: self.n,
            max_tokens: self.max_tokens,
            seed: self.seed,
            temperature: self.temperature,
            top_p: self.top_p,
            min_p: self.min_p,
            typical_p: self.typical_p,
            top_k: self.top_k,
            repetition_penalty: self.repetition_penalty,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            ignores_end: self.ignores_end.into(),
            echoes: self.echoes.into(),
            has_special: self.has_special.into(),
            shifts: self.shifts.into(),
            keep: self.keep,
            guesses: self.guesses,
            logprobs: if self.logprobs { 0 } else { -1 },
            grammar: self.grammar.map_or(ptr::null_mut(), Grammar::handle),
            adapter: self.adapter.map_or(ptr::null_mut(), Adapter::handle),
            ..Default::default()
        };
        Request { options, stop: self.stop.clone(), stop_tokens: self.stop_tokens.clone() }
    }
}

/// Options with the texts and tokens that they refer to.
pub(crate) struct Request {
    options: sys::rl_generate_options,
    stop: Vec<String>,
    stop_tokens: Vec<i32>,
}

// SAFETY: the pointers in it are handles, which are numbers.
unsafe impl Send for Request {}

impl Request {
    /// Calls `call` with the struct of the library.
    pub(crate) fn lend<T>(&self, call: impl FnOnce(&sys::rl_generate_options) -> T) -> T {
        let stop: Vec<sys::rl_text_v1> = self.stop.iter().map(|text| error::lend(text)).collect();
        call(&sys::rl_generate_options {
            stop: stop.as_ptr(),
            n_stop: stop.len() as u32,
            stop_tokens: self.stop_tokens.as_ptr(),
            n_stop_tokens: self.stop_tokens.len() as u32,
            ..self.options
        })
    }
}

/// Why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finish {
    /// An end token, a stop token or a stop text.
    Stop,
    /// It has the most tokens that were asked for.
    Length,
    /// The context is full.
    Context,
    /// The listener or another thread ended it.
    Cancelled,
    /// It failed.
    Failed,
}

impl Finish {
    pub(crate) fn of(number: u32) -> Option<Finish> {
        match number {
            sys::RL_FINISH_STOP => Some(Finish::Stop),
            sys::RL_FINISH_LENGTH => Some(Finish::Length),
            sys::RL_FINISH_CONTEXT => Some(Finish::Context),
            sys::RL_FINISH_CANCELLED => Some(Finish::Cancelled),
            sys::RL_FINISH_FAILED => Some(Finish::Failed),
            _ => None,
        }
    }
}

/// What is new of a text, until the listener returns.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// Which of the texts.
    pub choice: u32,
    /// Whole characters.
    pub text: &'a str,
    /// None while a long prompt is read, and in a last piece.
    pub tokens: &'a [i32],
    /// Of the tokens; none unless they were asked for.
    pub logprobs: &'a [f32],
    /// `None` while it goes on.
    pub finish: Option<Finish>,
}

impl<'a> Piece<'a> {
    /// # Safety
    /// What the piece refers to is lent for as long as 'a.
    pub(crate) unsafe fn of(piece: &'a sys::rl_piece) -> Piece<'a> {
        let count = piece.n_tokens as usize;
        // SAFETY: the caller's promise.
        let (text, tokens, logprobs) = unsafe {
            let text = error::bytes_of(piece.text);
            let tokens: &[i32] = match count {
                0 => &[],
                _ => std::slice::from_raw_parts(piece.tokens, count),
            };
            let logprobs: &[f32] = match (count, piece.logprobs.is_null()) {
                (0, _) | (_, true) => &[],
                _ => std::slice::from_raw_parts(piece.logprobs, count),
            };
            (text, tokens, logprobs)
        };
        Piece {
            choice: piece.choice,
            text: std::str::from_utf8(text).unwrap_or("\u{fffd}"), // the library gives UTF-8
            tokens,
            logprobs,
            finish: Finish::of(piece.finish),
        }
    }
}

impl fmt::Display for Piece<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// What a call of `generate` has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Why the last text ended.
    pub finish: Option<Finish>,
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the prompt that were in the cache.
    pub reused_tokens: u64,
    /// Tokens of all texts.
    pub output_tokens: u64,
    /// Tokens that speculation proposed.
    pub guessed_tokens: u64,
    /// Tokens of these that were right.
    pub accepted_tokens: u64,
    /// Tokens that were computed again.
    pub recomputed_tokens: u64,
    /// Runs of the model.
    pub steps: u64,
    /// When it was asked for, in nanoseconds of a clock of any origin.
    pub submitted_ns: u64,
    /// When it began.
    pub started_ns: u64,
    /// When there was a token.
    pub first_token_ns: u64,
    /// When it ended.
    pub finished_ns: u64,
}

impl Statistics {
    pub(crate) fn of(from: &sys::rl_statistics) -> Statistics {
        Statistics {
            finish: Finish::of(from.finish),
            prompt_tokens: from.prompt_tokens,
            reused_tokens: from.reused_tokens,
            output_tokens: from.output_tokens,
            guessed_tokens: from.guessed_tokens,
            accepted_tokens: from.accepted_tokens,
            recomputed_tokens: from.recomputed_tokens,
            steps: from.steps,
            submitted_ns: from.submitted_ns,
            started_ns: from.started_ns,
            first_token_ns: from.first_token_ns,
            finished_ns: from.finished_ns,
        }
    }
}
