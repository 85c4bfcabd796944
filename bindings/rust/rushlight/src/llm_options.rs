//! How language models are opened.

use std::path::PathBuf;
use std::ptr;

use rushlight_sys as sys;

use crate::error::{c_path, c_text, Result};
use crate::options::Paths;

/// The type of the keys and values that a model keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// What the program says.
    #[default]
    Automatic,
    /// 4 bytes.
    Float32,
    /// 2 bytes.
    Float16,
    /// 1 byte, and scales.
    Int8,
}

/// How a language model is opened.
#[derive(Clone, Debug, Default)]
pub struct LlmOptions {
    /// Threads for kernels, the caller's among them; 0: one for each core.
    pub threads: u32,
    /// Bytes without the cache; 0: no limit.
    pub memory_limit: u64,
    /// The `.ptd` that belongs to the program.
    pub data_path: Option<PathBuf>,
    /// The file is read, not mapped, and may be written meanwhile.
    pub reads_file: bool,
    /// Each use asks whether the file has changed.
    pub guards_file: bool,
    /// The type of keys and values.
    pub cache: Cache,
    /// Texts that are computed at once; 0: 32.
    pub max_texts: u32,
    /// Bytes of the cache; 0: four texts as long as the context.
    pub cache_limit: u64,
    /// Rows of prompts that are computed together with tokens of other texts; 0: 128.
    pub prefill_rows: u64,
    /// In place of the program's.
    pub chat_template: Option<String>,
    /// Shared libraries with kernels of operators of your own.
    pub kernel_libraries: Vec<PathBuf>,
    /// Shared libraries with backends.
    pub backend_libraries: Vec<PathBuf>,
}

impl LlmOptions {
    pub(crate) fn lend<T>(
        &self,
        open: impl FnOnce(&sys::rl_llm_options) -> Result<T>,
    ) -> Result<T> {
        let data_path = self.data_path.as_deref().map(c_path).transpose()?;
        let template = self.chat_template.as_deref();
        let template = template.map(|text| c_text("chat_template", text)).transpose()?;
        let kernels = Paths::new(&self.kernel_libraries)?;
        let backends = Paths::new(&self.backend_libraries)?;
        open(&sys::rl_llm_options {
            threads: self.threads,
            memory_limit: self.memory_limit,
            data_path: data_path.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            reads_file: self.reads_file.into(),
            guards_file: self.guards_file.into(),
            cache: match self.cache {
                Cache::Automatic => sys::RL_CACHE_AUTOMATIC,
                Cache::Float32 => sys::RL_CACHE_FLOAT32,
                Cache::Float16 => sys::RL_CACHE_FLOAT16,
                Cache::Int8 => sys::RL_CACHE_INT8,
            },
            max_texts: self.max_texts,
            cache_limit: self.cache_limit,
            prefill_rows: self.prefill_rows,
            chat_template: template.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            backend_libraries: backends.pointers.as_ptr(),
            n_backend_libraries: backends.pointers.len() as u32,
            kernel_libraries: kernels.pointers.as_ptr(),
            n_kernel_libraries: kernels.pointers.len() as u32,
            ..Default::default()
        })
    }
}
