//! Programs.

use std::ffi::{CStr, CString};
use std::io::Write;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use rushlight_sys as sys;

use crate::callback;
use crate::cancel::Canceller;
use crate::error::{self, c_path, c_text, check, Error, Result};
use crate::memory::{self, Memory};
use crate::options::{ModuleOptions, TraceOptions};
use crate::tensor::{MemoryMut, TensorView};
use crate::value::{MethodInfo, Outputs, StateInfo, Value, ValueInfo};

/// A method that was called: what a run needs to know of it.
struct Called {
    name: CString,
    n_outputs: u32,
}

/// A program that is open.
///
/// One thread at a time uses it, which the compiler holds: it may be sent to another thread, and is
/// not shared. [`try_clone`] makes another for another thread; a [`Canceller`] ends a run from any
/// thread.
///
/// ```compile_fail
/// fn is_shared<T: Sync>() {}
/// is_shared::<rushlight::Module>();
/// ```
///
/// Outputs borrow the module, whose next run writes their memory:
///
/// ```compile_fail
/// fn twice(module: &mut rushlight::Module) -> rushlight::Result<()> {
///     let first = module.run("forward", &[])?;
///     let second = module.run("forward", &[])?;
///     println!("{:?} {:?}", first.get(0)?, second.get(0)?);
///     Ok(())
/// }
/// ```
///
/// [`try_clone`]: Module::try_clone
pub struct Module {
    handle: *mut sys::rl_module,
    program: Option<Arc<dyn Memory>>, // stays while the library reads it
    called: Vec<Called>,
}

// SAFETY: any thread may use the handle, one at a time: there is no `Sync`.
unsafe impl Send for Module {}

impl Module {
    /// Opens a program (`.pte`), or the program in a bundled one (`.bpte`).
    pub fn open(path: impl AsRef<Path>) -> Result<Module> {
        Module::open_with(path, &ModuleOptions::default())
    }

    /// Opens a file with options.
    pub fn open_with(path: impl AsRef<Path>, options: &ModuleOptions) -> Result<Module> {
        let path = c_path(path.as_ref())?;
        options.lend(|options| {
            Module::of(None, |module, error| {
                // SAFETY: texts and structs that live until this returns.
                unsafe { sys::rl_module_open(path.as_ptr(), options, module, error) }
            })
        })
    }

    /// Opens a program in memory, such as a `Vec<u8>`, an `Arc<[u8]>` or a file that was mapped.
    /// The module keeps it, and does not copy it.
    pub fn from_bytes<M>(program: M, options: &ModuleOptions) -> Result<Module>
    where
        M: AsRef<[u8]> + Send + Sync + 'static,
    {
        let program = memory::keep(program);
        let (data, bytes) = program.parts();
        options.lend(|options| {
            Module::of(Some(program), |module, error| {
                // SAFETY: the module keeps the memory; structs live until this returns.
                unsafe { sys::rl_module_open_memory(data.cast(), bytes, options, module, error) }
            })
        })
    }

    fn of(
        program: Option<Arc<dyn Memory>>,
        open: impl FnOnce(*mut *mut sys::rl_module, *mut sys::rl_error) -> sys::rl_status,
    ) -> Result<Module> {
        let mut handle = ptr::null_mut();
        check(|error| open(&mut handle, error))?;
        Ok(Module { handle, program, called: Vec::new() })
    }

    /// Closes it, as dropping it does, which cannot say what fails.
    pub fn close(mut self) -> Result<()> {
        let handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        // SAFETY: a handle, which is not used after this.
        check(|error| unsafe { sys::rl_module_close(handle, error) })
    }

    /// A module on the same program with memory and state of its own, for another thread.
    pub fn try_clone(&self) -> Result<Module> {
        // SAFETY: a handle; this thread alone uses it.
        Module::of(self.program.clone(), |copy, error| unsafe {
            sys::rl_module_clone(self.handle, copy, error)
        })
    }

    /// A clone with the same methods loaded, and with the current state and seed.
    pub fn fork(&self) -> Result<Module> {
        // SAFETY: as above.
        Module::of(self.program.clone(), |copy, error| unsafe {
            sys::rl_module_fork(self.handle, copy, error)
        })
    }

    /// What ends a run of this module from any thread.
    pub fn canceller(&self) -> Canceller {
        Canceller::of_module(self.handle)
    }

    // ---- what it is ----

    /// The names of the methods.
    pub fn methods(&self) -> Result<Vec<String>> {
        let mut info = sys::rl_module_info::default();
        // SAFETY: a handle, and a struct that lives until this returns.
        check(|error| unsafe { sys::rl_module_describe(self.handle, &mut info, error) })?;
        (0..info.n_methods)
            .map(|index| {
                let mut name = sys::rl_text_v1 { data: ptr::null(), size: 0 };
                // SAFETY: as above; names are lent until the module is closed.
                check(|error| unsafe {
                    sys::rl_module_method_name(self.handle, index, &mut name, error)
                })?;
                Ok(unsafe { error::copy_text(name) })
            })
            .collect()
    }

    /// Bytes of the methods that are loaded.
    pub fn memory_in_use(&self) -> Result<u64> {
        let mut info = sys::rl_module_info::default();
        // SAFETY: a handle, and a struct that lives until this returns.
        check(|error| unsafe { sys::rl_module_describe(self.handle, &mut info, error) })?;
        Ok(info.memory_in_use)
    }

    /// What a method is, and the memory that it takes.
    pub fn method(&self, method: &str) -> Result<MethodInfo> {
        let info = self.describe(&c_text("method", method)?)?;
        // SAFETY: names are lent until the module is closed.
        Ok(unsafe { MethodInfo::of(&info) })
    }

    fn describe(&self, method: &CStr) -> Result<sys::rl_method_info> {
        let mut info = sys::rl_method_info::default();
        // SAFETY: a handle, and what lives until this returns.
        check(|error| unsafe {
            sys::rl_module_describe_method(self.handle, method.as_ptr(), &mut info, error)
        })?;
        Ok(info)
    }

    /// The inputs of a method.
    pub fn inputs(&self, method: &str) -> Result<Vec<ValueInfo>> {
        let method = c_text("method", method)?;
        let count = self.describe(&method)?.n_inputs;
        (0..count)
            .map(|index| self.value_info(&method, index, sys::rl_module_describe_input))
            .collect()
    }

    /// The outputs of a method.
    pub fn outputs(&self, method: &str) -> Result<Vec<ValueInfo>> {
        let method = c_text("method", method)?;
        let count = self.describe(&method)?.n_outputs;
        (0..count)
            .map(|index| self.value_info(&method, index, sys::rl_module_describe_output))
            .collect()
    }

    fn value_info(&self, method: &CStr, index: u32, describe: Describe) -> Result<ValueInfo> {
        let mut info = sys::rl_value_info::default();
        // SAFETY: a handle, and what lives until this returns; names are lent until the module is
        // closed.
        check(|error| unsafe { describe(self.handle, method.as_ptr(), index, &mut info, error) })?;
        unsafe { ValueInfo::of(&info) }
    }

    /// What the inputs of a method have to do with each other, such as "size 0 of input 'y' == size 0
    /// of input 'x'"; a run that does not keep to it is refused.
    pub fn relations(&self, method: &str) -> Result<Vec<String>> {
        let method = c_text("method", method)?;
        let mut count = 0;
        // SAFETY: a handle, and what lives until this returns.
        check(|error| unsafe {
            sys::rl_module_relation_count(self.handle, method.as_ptr(), &mut count, error)
        })?;
        (0..count)
            .map(|index| {
                let mut text = sys::rl_text_v1 { data: ptr::null(), size: 0 };
                // SAFETY: as above; texts are lent until the module is closed.
                check(|error| unsafe {
                    let name = method.as_ptr();
                    sys::rl_module_relation(self.handle, name, index, &mut text, error)
                })?;
                Ok(unsafe { error::copy_text(text) })
            })
            .collect()
    }

    // ---- running ----

    /// Loads a method, which otherwise its first run does.
    pub fn load(&mut self, method: &str) -> Result<()> {
        let method = c_text("method", method)?;
        // SAFETY: a handle, and a text that lives until this returns.
        check(|error| unsafe { sys::rl_module_load(self.handle, method.as_ptr(), error) })
    }

    /// Frees a method, its memory and its own state.
    pub fn unload(&mut self, method: &str) -> Result<()> {
        let method = c_text("method", method)?;
        // SAFETY: as above.
        check(|error| unsafe { sys::rl_module_unload(self.handle, method.as_ptr(), error) })
    }

    /// Runs a method, after loading it if necessary. Inputs are checked before anything runs, and
    /// are read where they lie.
    pub fn run<'a>(&'a mut self, method: &str, inputs: &[Value<'a>]) -> Result<Outputs<'a>> {
        let called = self.call(method)?;
        let values = self.execute(called, inputs)?;
        // SAFETY: outputs lie in memory of the module, which is borrowed, or of inputs, which are,
        // too.
        Ok(unsafe { Outputs::new(values) })
    }

    /// Runs a method, some of whose outputs are written to memory of the caller: pairs of their
    /// indices and the memory, which must have room for them.
    pub fn run_into<'a>(
        &'a mut self,
        method: &str,
        inputs: &[Value<'a>],
        memory: impl IntoIterator<Item = (usize, MemoryMut<'a>)>,
    ) -> Result<Outputs<'a>> {
        let called = self.call(method)?;
        let mut set = Vec::new();
        let mut result = memory.into_iter().try_for_each(|(index, memory)| {
            self.set_output(called, index, &memory, &set)?;
            set.push(index);
            Ok(())
        });
        let mut values = Vec::new();
        if result.is_ok() {
            match self.execute(called, inputs) {
                Ok(outputs) => values = outputs,
                Err(error) => result = Err(error),
            }
        }
        // The memory is the caller's again, whatever happened.
        let name = self.called[called].name.as_ptr();
        for index in set {
            // SAFETY: a handle and a text of this module. NULL: the module's own memory.
            let reset = check(|error| unsafe {
                sys::rl_module_set_output(
                    self.handle,
                    name,
                    index as u32,
                    ptr::null_mut(),
                    0,
                    error,
                )
            });
            if reset.is_err() {
                // SAFETY: as above. Without the method nothing writes there.
                check(|error| unsafe { sys::rl_module_unload(self.handle, name, error) })?;
            }
            result = result.and(reset);
        }
        result?;
        // SAFETY: as in run(), and the memory is borrowed as long.
        Ok(unsafe { Outputs::new(values) })
    }

    /// The index in `called` of a method.
    fn call(&mut self, method: &str) -> Result<usize> {
        let known = self.called.iter().position(|c| c.name.as_bytes() == method.as_bytes());
        if let Some(index) = known {
            return Ok(index);
        }
        let name = c_text("method", method)?;
        let n_outputs = self.describe(&name)?.n_outputs;
        self.called.push(Called { name, n_outputs });
        Ok(self.called.len() - 1)
    }

    fn execute(&mut self, called: usize, inputs: &[Value<'_>]) -> Result<Vec<sys::rl_value_v1>> {
        let Called { name, n_outputs } = &self.called[called];
        let inputs: Vec<sys::rl_value_v1> = inputs.iter().map(Value::as_sys).collect();
        let mut outputs = vec![sys::rl_value_v1::default(); *n_outputs as usize];
        // SAFETY: a handle, and values that live until this returns.
        check(|error| unsafe {
            sys::rl_module_run(
                self.handle,
                name.as_ptr(),
                inputs.as_ptr(),
                inputs.len() as u32,
                outputs.as_mut_ptr(),
                *n_outputs,
                error,
            )
        })?;
        Ok(outputs)
    }

    fn set_output(
        &self,
        called: usize,
        index: usize,
        memory: &MemoryMut<'_>,
        set: &[usize],
    ) -> Result<()> {
        let Called { name, n_outputs } = &self.called[called];
        let method = name.to_string_lossy();
        let wrong =
            |text: String| Err(Error::argument(format!("{method}: output {index}: {text}")));
        let Some(number) = u32::try_from(index).ok().filter(|number| number < n_outputs) else {
            return wrong(format!("there is none: the method has {n_outputs}"));
        };
        if set.contains(&index) {
            return wrong("it has memory twice".into());
        }
        let info = self.value_info(name, number, sys::rl_module_describe_output)?;
        // Rust has no type for all dtypes; bytes serve for any.
        if info.dtype != Some(memory.dtype) && memory.dtype.bytes() != 1 {
            if let Some(dtype) = info.dtype {
                return wrong(format!("it is {dtype}, its memory has {}", memory.dtype));
            }
        }
        // SAFETY: run_into() takes the memory back before it returns.
        check(|error| unsafe {
            let data = memory.data.cast();
            sys::rl_module_set_output(self.handle, name.as_ptr(), number, data, memory.bytes, error)
        })
    }

    /// Random operators draw as after `torch.manual_seed(seed)`.
    pub fn seed(&mut self, seed: u64) -> Result<()> {
        // SAFETY: a handle.
        check(|error| unsafe { sys::rl_module_seed(self.handle, seed, error) })
    }

    // ---- state ----

    /// The state of the methods that are loaded.
    pub fn states(&self) -> Result<Vec<StateInfo>> {
        let mut count = 0;
        // SAFETY: a handle, and a number that lives until this returns.
        check(|error| unsafe { sys::rl_module_state_count(self.handle, &mut count, error) })?;
        (0..count)
            .map(|index| {
                let info = self.state_info(index)?;
                // SAFETY: the texts are lent until a method is loaded or unloaded.
                let (name, method) =
                    unsafe { (error::copy_text(info.name), error::copy_text(info.method)) };
                let tensor = unsafe { TensorView::of_state(&info) }?;
                Ok(StateInfo { name, method, dtype: tensor.dtype(), sizes: tensor.sizes().into() })
            })
            .collect()
    }

    /// The content of a state, by its index in [`states`](Module::states).
    pub fn state(&self, index: usize) -> Result<TensorView<'_>> {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        // SAFETY: nothing writes the state, or frees it, while the module is borrowed.
        unsafe { TensorView::of_state(&self.state_info(index)?) }
    }

    fn state_info(&self, index: u32) -> Result<sys::rl_state_info> {
        let mut info = sys::rl_state_info::default();
        // SAFETY: a handle, and a struct that lives until this returns.
        check(|error| unsafe { sys::rl_module_state(self.handle, index, &mut info, error) })?;
        Ok(info)
    }

    /// All state and the seed's place as bytes, for [`restore`](Module::restore).
    pub fn snapshot(&self) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: a handle; NULL asks for the number of bytes.
        check(|error| unsafe {
            sys::rl_module_snapshot(self.handle, ptr::null_mut(), 0, &mut bytes, error)
        })?;
        let mut snapshot = vec![0; bytes];
        // SAFETY: there is room for so many.
        check(|error| unsafe {
            let to = snapshot.as_mut_ptr().cast();
            sys::rl_module_snapshot(self.handle, to, bytes, ptr::null_mut(), error)
        })?;
        Ok(snapshot)
    }

    /// Puts back the state of a snapshot, of this module or of another one of the same program with
    /// the same methods loaded.
    pub fn restore(&mut self, snapshot: &[u8]) -> Result<()> {
        // SAFETY: a handle, and bytes that live until this returns.
        check(|error| unsafe {
            sys::rl_module_restore(self.handle, snapshot.as_ptr().cast(), snapshot.len(), error)
        })
    }

    /// The state has its initial content again.
    pub fn reset_state(&mut self) -> Result<()> {
        // SAFETY: a handle.
        check(|error| unsafe { sys::rl_module_reset_state(self.handle, error) })
    }

    // ---- traces and failures ----

    /// Records loads and runs from now on, and forgets what was recorded.
    pub fn trace_start(&mut self, options: &TraceOptions) -> Result<()> {
        let options = options.as_sys();
        // SAFETY: a handle, and a struct that lives until this returns.
        check(|error| unsafe { sys::rl_module_trace_start(self.handle, &options, error) })
    }

    /// Records no more, and keeps what was recorded.
    pub fn trace_stop(&mut self) -> Result<()> {
        // SAFETY: a handle.
        check(|error| unsafe { sys::rl_module_trace_stop(self.handle, error) })
    }

    /// Writes the trace (ETDump) to a file, and values to one with ".values" at its end.
    pub fn trace_save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        // SAFETY: a handle, and a text that lives until this returns.
        check(|error| unsafe { sys::rl_module_trace_save(self.handle, path.as_ptr(), error) })
    }

    /// Writes the trace (ETDump). What `to` fails with, or panics with, comes out of this.
    pub fn trace_write(&self, to: &mut dyn Write) -> Result<()> {
        callback::write(to, |write, userdata, error| {
            // SAFETY: a handle; the callback is called before this returns.
            unsafe { sys::rl_module_trace_write(self.handle, write, userdata, error) }
        })
    }

    /// Writes the values that the trace refers to (the debug buffer).
    pub fn trace_values(&self, to: &mut dyn Write) -> Result<()> {
        callback::write(to, |write, userdata, error| {
            // SAFETY: as above.
            unsafe { sys::rl_module_trace_values(self.handle, write, userdata, error) }
        })
    }

    /// The report of the last load, input or run that failed, for `rushlight explain`; `None` if
    /// nothing did. [`Code::InvalidState`](crate::Code::InvalidState) unless
    /// [`ModuleOptions::reports_failures`].
    pub fn failure_report(&self) -> Result<Option<Vec<u8>>> {
        let mut report = sys::rl_bytes_v1 { data: ptr::null(), size: 0 };
        // SAFETY: a handle, and a struct that lives until this returns.
        check(|error| unsafe { sys::rl_module_failure_report(self.handle, &mut report, error) })?;
        let bytes = sys::rl_text_v1 { data: report.data.cast(), size: report.size };
        // SAFETY: lent until the next call.
        Ok((report.size > 0).then(|| unsafe { error::bytes_of(bytes) }.to_vec()))
    }
}

type Describe = unsafe extern "C" fn(
    *mut sys::rl_module,
    *const std::ffi::c_char,
    u32,
    *mut sys::rl_value_info,
    *mut sys::rl_error,
) -> sys::rl_status;

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: a handle that is not used after this; NULL is nothing to close.
        let _ = check(|error| unsafe { sys::rl_module_close(self.handle, error) });
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module").field("methods", &self.methods().ok()).finish()
    }
}
