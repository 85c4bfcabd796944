//! What calls fail with.

use std::ffi::{c_char, CStr, CString};
use std::fmt;
use std::path::Path;

use rushlight_sys as sys;

/// Why a call failed, as a number of the C interface: ExecuTorch's where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A fault inside the library, a backend or a kernel.
    Internal,
    /// A handle that is closed or in use, or a call that does not fit to what went before.
    InvalidState,
    /// The run of a method has ended.
    EndOfMethod,
    /// It is loaded already.
    AlreadyLoaded,
    /// What the program or this build does not support.
    NotSupported,
    /// What is not implemented.
    NotImplemented,
    /// An argument that is not allowed; the text names it.
    InvalidArgument,
    /// A value of another type than wanted.
    InvalidType,
    /// A kernel is missing; the text names it.
    OperatorMissing,
    /// There is no room for more kernels.
    RegistrationExceedingMaxKernels,
    /// There is a kernel or a backend of this name already.
    RegistrationAlreadyRegistered,
    /// What was looked for does not exist.
    NotFound,
    /// There is not enough memory.
    MemoryAllocationFailed,
    /// A file cannot be read or written.
    AccessFailed,
    /// A file is no program, or is damaged.
    InvalidProgram,
    /// Data beside a program is damaged, or belongs to another one.
    InvalidExternalData,
    /// A limit was reached.
    OutOfResources,
    /// A payload is cut or of another version.
    DelegateInvalidCompatibility,
    /// A delegate got no memory.
    DelegateMemoryAllocationFailed,
    /// A delegate's handle is not valid.
    DelegateInvalidHandle,
    /// A run was cancelled.
    Cancelled,
    /// A number that this crate has no name for.
    Other(i32),
}

const CODES: [(sys::rl_status, Code); 21] = [
    (sys::RL_INTERNAL, Code::Internal),
    (sys::RL_INVALID_STATE, Code::InvalidState),
    (sys::RL_END_OF_METHOD, Code::EndOfMethod),
    (sys::RL_ALREADY_LOADED, Code::AlreadyLoaded),
    (sys::RL_NOT_SUPPORTED, Code::NotSupported),
    (sys::RL_NOT_IMPLEMENTED, Code::NotImplemented),
    (sys::RL_INVALID_ARGUMENT, Code::InvalidArgument),
    (sys::RL_INVALID_TYPE, Code::InvalidType),
    (sys::RL_OPERATOR_MISSING, Code::OperatorMissing),
    (sys::RL_REGISTRATION_EXCEEDING_MAX_KERNELS, Code::RegistrationExceedingMaxKernels),
    (sys::RL_REGISTRATION_ALREADY_REGISTERED, Code::RegistrationAlreadyRegistered),
    (sys::RL_NOT_FOUND, Code::NotFound),
    (sys::RL_MEMORY_ALLOCATION_FAILED, Code::MemoryAllocationFailed),
    (sys::RL_ACCESS_FAILED, Code::AccessFailed),
    (sys::RL_INVALID_PROGRAM, Code::InvalidProgram),
    (sys::RL_INVALID_EXTERNAL_DATA, Code::InvalidExternalData),
    (sys::RL_OUT_OF_RESOURCES, Code::OutOfResources),
    (sys::RL_DELEGATE_INVALID_COMPATIBILITY, Code::DelegateInvalidCompatibility),
    (sys::RL_DELEGATE_MEMORY_ALLOCATION_FAILED, Code::DelegateMemoryAllocationFailed),
    (sys::RL_DELEGATE_INVALID_HANDLE, Code::DelegateInvalidHandle),
    (sys::RL_CANCELLED, Code::Cancelled),
];

impl Code {
    fn of(number: sys::rl_status) -> Code {
        let named = CODES.iter().find(|(known, _)| *known == number);
        named.map_or(Code::Other(number), |(_, code)| *code)
    }

    /// The number of the C interface.
    pub fn number(self) -> i32 {
        match self {
            Code::Other(number) => number,
            named => CODES.iter().find(|(_, code)| *code == named).map_or(0, |(number, _)| *number),
        }
    }
}

/// What a call failed with. The text names the input, the operator or the file, what came, and what
/// is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: Code,
    text: String,
    instruction: Option<u32>,
    delegate: Option<u32>,
}

/// What calls return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: Code, text: impl Into<String>) -> Error {
        Error { code, text: text.into(), instruction: None, delegate: None }
    }

    pub(crate) fn argument(text: impl Into<String>) -> Error {
        Error::new(Code::InvalidArgument, text)
    }

    /// The kind of failure.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The instruction of the method that failed.
    pub fn instruction(&self) -> Option<u32> {
        self.instruction
    }

    /// The delegate of the method that failed.
    pub fn delegate(&self) -> Option<u32> {
        self.delegate
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// Calls a function of the library whose last argument is an `rl_error`.
pub(crate) fn check(call: impl FnOnce(*mut sys::rl_error) -> sys::rl_status) -> Result<()> {
    let mut error = sys::rl_error::default();
    let status = call(&mut error);
    if status == sys::RL_OK {
        return Ok(());
    }
    let some = |index: u32| (index != sys::RL_NO_INDEX).then_some(index);
    Err(Error {
        code: Code::of(status),
        text: text_of_error(&error.text),
        instruction: some(error.instruction),
        delegate: some(error.delegate),
    })
}

fn text_of_error(text: &[c_char]) -> String {
    let bytes: Vec<u8> =
        text.iter().take_while(|byte| **byte != 0).map(|byte| *byte as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text for an argument that ends with a NUL.
pub(crate) fn c_text(what: &str, text: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(text).map_err(|error| {
        Error::argument(format!("{what}: byte {} is a NUL, which ends texts", error.nul_position()))
    })
}

/// A path as the library takes it: its bytes, or UTF-8 where paths are no bytes.
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        c_text("path", path.as_os_str().as_bytes())
    }
    #[cfg(not(unix))]
    {
        let text = path.to_str().ok_or_else(|| Error::argument("path: it is not Unicode"))?;
        c_text("path", text)
    }
}

/// A text that the library lends for ever.
pub(crate) fn forever(text: *const c_char) -> &'static str {
    // SAFETY: the library's own constants, in ASCII and with a NUL.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?")
}

/// A text of the caller, for the time of a call.
pub(crate) fn lend(text: &str) -> sys::rl_text_v1 {
    sys::rl_text_v1 { data: text.as_ptr().cast(), size: text.len() }
}

/// The bytes of a text of the library.
///
/// # Safety
/// The text is lent for as long as 'a.
pub(crate) unsafe fn bytes_of<'a>(text: sys::rl_text_v1) -> &'a [u8] {
    if text.data.is_null() || text.size == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(text.data.cast(), text.size) }
}

/// A copy of a text of the library.
///
/// # Safety
/// The text is lent until this returns.
pub(crate) unsafe fn copy_text(text: sys::rl_text_v1) -> String {
    // SAFETY: the caller's promise.
    String::from_utf8_lossy(unsafe { bytes_of(text) }).into_owned()
}
