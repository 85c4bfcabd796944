//! Language models.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use rushlight_sys as sys;

use crate::callback;
use crate::chat::{self, Message};
use crate::dtype::DType;
use crate::error::{c_path, check, lend, Result};
use crate::generate::{GenerateOptions, Piece, Statistics};
use crate::llm_options::LlmOptions;
use crate::memory::{self, Memory};
use crate::options::TraceOptions;
use crate::session::Session;

/// What a language model is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LlmInfo {
    /// Of keys and values; `None` for an encoder, which has none.
    pub cache_dtype: Option<DType>,
    /// Tokens that there are.
    pub vocabulary: u64,
    /// Positions of a text.
    pub context: u64,
    /// Elements of an embedding; 0: it makes none.
    pub hidden: u64,
    /// Bytes of 64 tokens in the cache.
    pub page_bytes: u64,
    /// Bytes of the cache that are taken now.
    pub cache_bytes: u64,
    /// The most bytes of the cache.
    pub cache_limit: u64,
    /// Whether it has a tokenizer.
    pub has_tokenizer: bool,
    /// Whether it has a chat template.
    pub has_chat_template: bool,
}

/// A language model. Any number of threads may use it at once, and their texts are computed
/// together.
///
/// Its sessions, grammars and adapters stay when it is dropped.
#[derive(Debug)]
pub struct LanguageModel {
    handle: *mut sys::rl_llm,
    program: Option<Arc<dyn Memory>>, // stays while the library reads it
}

// SAFETY: any thread may call the functions that are used here, but for that which closes.
unsafe impl Send for LanguageModel {}
// SAFETY: as above.
unsafe impl Sync for LanguageModel {}

impl LanguageModel {
    /// Opens a program with a language model.
    pub fn open(path: impl AsRef<Path>) -> Result<LanguageModel> {
        LanguageModel::open_with(path, &LlmOptions::default())
    }

    /// Opens a file with options.
    pub fn open_with(path: impl AsRef<Path>, options: &LlmOptions) -> Result<LanguageModel> {
        let path = c_path(path.as_ref())?;
        options.lend(|options| {
            let mut handle = ptr::null_mut();
            // SAFETY: texts and structs that live until this returns.
            check(|error| unsafe { sys::rl_llm_open(path.as_ptr(), options, &mut handle, error) })?;
            Ok(LanguageModel { handle, program: None })
        })
    }

    /// Opens a program in memory, which the model, its sessions, grammars and adapters keep.
    pub fn from_bytes<M>(program: M, options: &LlmOptions) -> Result<LanguageModel>
    where
        M: AsRef<[u8]> + Send + Sync + 'static,
    {
        let program = memory::keep(program);
        let (data, bytes) = program.parts();
        options.lend(|options| {
            let mut handle = ptr::null_mut();
            // SAFETY: as above, and the memory is kept.
            check(|error| unsafe {
                sys::rl_llm_open_memory(data.cast(), bytes, options, &mut handle, error)
            })?;
            Ok(LanguageModel { handle, program: Some(program) })
        })
    }

    /// Closes it, as dropping it does, which cannot say what fails.
    pub fn close(mut self) -> Result<()> {
        let handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        // SAFETY: a handle, which is not used after this.
        check(|error| unsafe { sys::rl_llm_close(handle, error) })
    }

    /// What it is.
    pub fn describe(&self) -> Result<LlmInfo> {
        let mut info = sys::rl_llm_info::default();
        // SAFETY: a handle, and a struct that lives until this returns.
        check(|error| unsafe { sys::rl_llm_describe(self.handle, &mut info, error) })?;
        Ok(LlmInfo {
            cache_dtype: DType::of(info.cache_dtype).ok(),
            vocabulary: info.vocabulary,
            context: info.context,
            hidden: info.hidden,
            page_bytes: info.page_bytes,
            cache_bytes: info.cache_bytes,
            cache_limit: info.cache_limit,
            has_tokenizer: info.has_tokenizer != 0,
            has_chat_template: info.has_chat_template != 0,
        })
    }

    // ---- texts and tokens ----

    /// The tokens of a text, with those that surround each text.
    pub fn encode(&self, text: &str) -> Result<Vec<i32>> {
        self.encode_with(text, true, false)
    }

    /// The tokens of a text. `adds_special`: with those that surround each text; `parses_special`:
    /// the texts of special tokens are read as these, which is not for texts of others.
    pub fn encode_with(
        &self,
        text: &str,
        adds_special: bool,
        parses_special: bool,
    ) -> Result<Vec<i32>> {
        let flags = if adds_special { sys::RL_ADD_SPECIAL } else { 0 }
            | if parses_special { sys::RL_PARSE_SPECIAL } else { 0 };
        // SAFETY: a handle, and a text that lives until this returns.
        collect(|to, capacity, count, error| unsafe {
            sys::rl_llm_encode(self.handle, lend(text), flags, to, capacity, count, error)
        })
    }

    /// The text of tokens, without special ones.
    pub fn decode(&self, tokens: &[i32]) -> Result<String> {
        self.decode_with(tokens, true)
    }

    /// The text of tokens.
    pub fn decode_with(&self, tokens: &[i32], skips_special: bool) -> Result<String> {
        let flags = if skips_special { sys::RL_SKIP_SPECIAL } else { 0 };
        // SAFETY: a handle, and tokens that live until this returns.
        let bytes: Vec<u8> = collect(|to: *mut u8, capacity, count, error| unsafe {
            let (data, n) = (tokens.as_ptr(), tokens.len());
            sys::rl_llm_decode(self.handle, data, n, flags, to.cast(), capacity, count, error)
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The tokens of a conversation by the model's chat template, which end where an answer begins.
    pub fn encode_messages(&self, messages: &[Message<'_>]) -> Result<Vec<i32>> {
        self.encode_chat(&chat::to_json(messages))
    }

    /// The tokens of a conversation by the model's chat template: an object of JSON with
    /// "messages", "add_generation_prompt", "tools" and what else the template reads.
    pub fn encode_chat(&self, json: &str) -> Result<Vec<i32>> {
        // SAFETY: a handle, and a text that lives until this returns.
        collect(|to, capacity, count, error| unsafe {
            sys::rl_llm_encode_chat(self.handle, lend(json), to, capacity, count, error)
        })
    }

    // ---- generating ----

    /// What the model's makers recommend.
    pub fn default_options(&self) -> Result<GenerateOptions<'static>> {
        let mut options = sys::rl_generate_options::default();
        // SAFETY: a handle, and a struct that lives until this returns.
        check(|error| unsafe { sys::rl_llm_default_options(self.handle, &mut options, error) })?;
        Ok(GenerateOptions::of(&options))
    }

    /// Generates texts after a prompt, and returns when they have ended; `listener` is told of
    /// pieces and may break. It must not generate with this model itself. Its panic comes out of
    /// this.
    pub fn generate(
        &self,
        prompt: &[i32],
        options: &GenerateOptions<'_>,
        mut listener: impl FnMut(&Piece<'_>) -> ControlFlow<()>,
    ) -> Result<Statistics> {
        callback::generate(
            prompt,
            &options.to_request(),
            &mut listener,
            |data, count, options, write, userdata, told, error| {
                // SAFETY: a handle, and what lives until this returns.
                unsafe {
                    sys::rl_llm_generate(
                        self.handle,
                        data,
                        count,
                        options,
                        write,
                        userdata,
                        told,
                        error,
                    )
                }
            },
        )
    }

    /// The vector of each text, of the length 1. Texts beyond the context are refused.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        self.embed_with(texts, true, false)
    }

    /// The vector of each text. `normalizes`: to the length 1; `truncates`: texts beyond the
    /// context are cut.
    pub fn embed_with(
        &self,
        texts: &[&str],
        normalizes: bool,
        truncates: bool,
    ) -> Result<Vec<Vec<f32>>> {
        let hidden = self.describe()?.hidden as usize;
        let views: Vec<sys::rl_text_v1> = texts.iter().map(|text| lend(text)).collect();
        let mut all = vec![0.0; hidden * texts.len()];
        // SAFETY: a handle, and what lives until this returns.
        check(|error| unsafe {
            let (data, count) = (views.as_ptr(), views.len() as u32);
            let (to, capacity) = (all.as_mut_ptr(), all.len());
            let (length, cut) = (normalizes.into(), truncates.into());
            sys::rl_llm_embed(self.handle, data, count, length, cut, to, capacity, error)
        })?;
        Ok(all.chunks(hidden.max(1)).map(<[f32]>::to_vec).collect())
    }

    // ---- traces ----

    /// Records steps of the model from now on, and forgets what was recorded. As the functions that
    /// follow, it waits for the step that runs.
    pub fn trace_start(&self, options: &TraceOptions) -> Result<()> {
        let options = options.as_sys();
        // SAFETY: a handle, and a struct that lives until this returns.
        check(|error| unsafe { sys::rl_llm_trace_start(self.handle, &options, error) })
    }

    /// Records no more, and keeps what was recorded.
    pub fn trace_stop(&self) -> Result<()> {
        // SAFETY: a handle.
        check(|error| unsafe { sys::rl_llm_trace_stop(self.handle, error) })
    }

    /// Writes the trace (ETDump) to a file, and values to one with ".values" at its end.
    pub fn trace_save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        // SAFETY: a handle, and a text that lives until this returns.
        check(|error| unsafe { sys::rl_llm_trace_save(self.handle, path.as_ptr(), error) })
    }

    /// Writes the trace (ETDump). What `to` fails with, or panics with, comes out of this.
    pub fn trace_write(&self, to: &mut dyn Write) -> Result<()> {
        callback::write(to, |write, userdata, error| {
            // SAFETY: a handle; the callback is called before this returns.
            unsafe { sys::rl_llm_trace_write(self.handle, write, userdata, error) }
        })
    }

    /// Writes the values that the trace refers to (the debug buffer).
    pub fn trace_values(&self, to: &mut dyn Write) -> Result<()> {
        callback::write(to, |write, userdata, error| {
            // SAFETY: as above.
            unsafe { sys::rl_llm_trace_values(self.handle, write, userdata, error) }
        })
    }

    // ---- what is made of it ----

    /// A session without tokens.
    pub fn session(&self) -> Result<Session> {
        let mut handle = ptr::null_mut();
        // SAFETY: a handle, and one that lives until this returns.
        check(|error| unsafe { sys::rl_session_open(self.handle, &mut handle, error) })?;
        Ok(Session::new(handle, self.program.clone()))
    }

    /// A session from a file of [`Session::save`]; `adapter` is that of the session.
    pub fn restore(&self, path: impl AsRef<Path>, adapter: Option<&Adapter>) -> Result<Session> {
        let path = c_path(path.as_ref())?;
        let adapter = adapter.map_or(ptr::null_mut(), Adapter::handle);
        let mut handle = ptr::null_mut();
        // SAFETY: as above.
        check(|error| unsafe {
            sys::rl_session_restore(self.handle, path.as_ptr(), adapter, &mut handle, error)
        })?;
        Ok(Session::new(handle, self.program.clone()))
    }

    /// Texts that match a regular expression.
    pub fn grammar_from_regex(&self, pattern: &str) -> Result<Grammar> {
        let mut handle = ptr::null_mut();
        // SAFETY: as above.
        check(|error| unsafe {
            sys::rl_grammar_from_regex(self.handle, lend(pattern), &mut handle, error)
        })?;
        Ok(Grammar { handle, _program: self.program.clone() })
    }

    /// Texts of JSON that a schema accepts.
    pub fn grammar_from_json_schema(&self, schema: &str) -> Result<Grammar> {
        let mut handle = ptr::null_mut();
        // SAFETY: as above.
        check(|error| unsafe {
            sys::rl_grammar_from_json_schema(self.handle, lend(schema), &mut handle, error)
        })?;
        Ok(Grammar { handle, _program: self.program.clone() })
    }

    /// An adapter (LoRA) of the model.
    pub fn adapter(&self, path: impl AsRef<Path>) -> Result<Adapter> {
        let path = c_path(path.as_ref())?;
        let mut handle = ptr::null_mut();
        // SAFETY: as above.
        check(|error| unsafe {
            sys::rl_adapter_open(self.handle, path.as_ptr(), &mut handle, error)
        })?;
        Ok(Adapter { handle, _program: self.program.clone() })
    }
}

impl Drop for LanguageModel {
    fn drop(&mut self) {
        // SAFETY: a handle that is not used after this; NULL is nothing to close.
        let _ = check(|error| unsafe { sys::rl_llm_close(self.handle, error) });
    }
}

/// Calls a function that fills an array: once for the number of items, and once for them.
pub(crate) fn collect<T: Copy + Default>(
    mut call: impl FnMut(*mut T, usize, *mut usize, *mut sys::rl_error) -> sys::rl_status,
) -> Result<Vec<T>> {
    let mut count = 0;
    check(|error| call(ptr::null_mut(), 0, &mut count, error))?;
    let mut items = vec![T::default(); count];
    check(|error| call(items.as_mut_ptr(), items.len(), &mut count, error))?;
    items.truncate(count);
    Ok(items)
}

macro_rules! made_of_model {
    ($(#[$docs:meta])* $name:ident, $handle:ident, $close:ident) => {
        $(#[$docs])*
        #[derive(Debug)]
        pub struct $name {
            handle: *mut sys::$handle,
            _program: Option<Arc<dyn Memory>>,
        }

        // SAFETY: any thread may use the handle, and one closes it.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl $name {
            pub(crate) fn handle(&self) -> *mut sys::$handle {
                self.handle
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: a handle that is not used after this.
                let _ = check(|error| unsafe { sys::$close(self.handle, error) });
            }
        }
    };
}

made_of_model!(
    /// What a text may be: it matches a regular expression, or is JSON that a schema accepts.
    Grammar,
    rl_grammar,
    rl_grammar_close
);

made_of_model!(
    /// An adapter (LoRA) of a model.
    Adapter,
    rl_adapter,
    rl_adapter_close
);
