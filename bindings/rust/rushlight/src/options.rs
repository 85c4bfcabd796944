//! How programs are opened and traced.

use std::ffi::{c_char, CString};
use std::path::PathBuf;
use std::ptr;

use rushlight_sys as sys;

use crate::error::{c_path, Result};

/// How a program is opened; `ModuleOptions::default()` is what
/// [`Module::open`](crate::Module::open) takes.
#[derive(Clone, Debug, Default)]
pub struct ModuleOptions {
    /// Threads for kernels, the caller's among them; 0: one for each core.
    pub threads: u32,
    /// Bytes for methods; 0: no limit.
    pub memory_limit: u64,
    /// Bytes of scratch for each method; 0: 1 MiB.
    pub scratch_bytes: u64,
    /// Instructions of a run; 0: 10,000,000.
    pub max_instructions: u64,
    /// The `.ptd` that belongs to the program.
    pub data_path: Option<PathBuf>,
    /// Shared libraries with kernels of operators of your own.
    pub kernel_libraries: Vec<PathBuf>,
    /// Shared libraries with backends.
    pub backend_libraries: Vec<PathBuf>,
    /// The file is read, not mapped, and may be written meanwhile.
    pub reads_file: bool,
    /// Each use asks whether the file has changed:
    /// [`Code::AccessFailed`](crate::Code::AccessFailed).
    pub guards_file: bool,
    /// [`Module::failure_report`](crate::Module::failure_report) has what failed.
    pub reports_failures: bool,
}

/// Texts of options, and the array of pointers to them that the library takes.
pub(crate) struct Paths {
    _texts: Vec<CString>,
    pub(crate) pointers: Vec<*const c_char>,
}

impl Paths {
    pub(crate) fn new(paths: &[PathBuf]) -> Result<Paths> {
        let texts = paths.iter().map(|path| c_path(path)).collect::<Result<Vec<_>>>()?;
        let pointers = texts.iter().map(|text| text.as_ptr()).collect();
        Ok(Paths { _texts: texts, pointers })
    }
}

impl ModuleOptions {
    /// Calls `open` with the struct of the library.
    pub(crate) fn lend<T>(
        &self,
        open: impl FnOnce(&sys::rl_module_options) -> Result<T>,
    ) -> Result<T> {
        let kernels = Paths::new(&self.kernel_libraries)?;
        let backends = Paths::new(&self.backend_libraries)?;
        let data_path = self.data_path.as_deref().map(c_path).transpose()?;
        open(&sys::rl_module_options {
            threads: self.threads,
            memory_limit: self.memory_limit,
            scratch_bytes: self.scratch_bytes,
            max_instructions: self.max_instructions,
            data_path: data_path.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            kernel_libraries: kernels.pointers.as_ptr(),
            n_kernel_libraries: kernels.pointers.len() as u32,
            backend_libraries: backends.pointers.as_ptr(),
            n_backend_libraries: backends.pointers.len() as u32,
            reads_file: self.reads_file.into(),
            guards_file: self.guards_file.into(),
            reports_failures: self.reports_failures.into(),
            ..Default::default()
        })
    }
}

/// What is recorded of values while a module is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceValues {
    /// Times alone.
    #[default]
    None,
    /// Outputs of methods.
    Outputs,
    /// All values.
    All,
}

/// How a module is traced.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceOptions {
    /// Which values are recorded.
    pub values: TraceValues,
    /// Room for events, some 80 bytes for each; 0: 1 MiB.
    pub bytes: u64,
    /// Room for values; 0: 16 MiB if there are any.
    pub value_bytes: u64,
}

impl TraceOptions {
    /// The struct of the library.
    pub(crate) fn as_sys(&self) -> sys::rl_trace_options {
        sys::rl_trace_options {
            values: match self.values {
                TraceValues::None => sys::RL_TRACE_TIMES,
                TraceValues::Outputs => sys::RL_TRACE_OUTPUTS,
                TraceValues::All => sys::RL_TRACE_ALL_VALUES,
            },
            bytes: self.bytes,
            value_bytes: self.value_bytes,
            ..Default::default()
        }
    }
}
