//! Functions that the library calls back: a panic must not pass through it, so it ends the call,
//! and goes on when the call has returned.

use std::any::Any;
use std::ffi::c_void;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

use rushlight_sys as sys;

use crate::error::{check, Code, Error, Result};
use crate::generate::{Piece, Request, Statistics};

type Panic = Option<Box<dyn Any + Send>>;

/// Calls `body` and keeps its panic; what it returns then is `stopped`.
fn guard<T>(panic: &mut Panic, stopped: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        *panic = Some(payload);
        stopped
    })
}

fn go_on(panic: Panic) {
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
}

struct Writing<'w> {
    to: &'w mut dyn Write,
    result: io::Result<()>,
    panic: Panic,
}

unsafe extern "C" fn write_piece(userdata: *mut c_void, data: *const c_void, bytes: usize) -> i32 {
    // SAFETY: write() gives a Writing that nobody else uses during its call, and the library bytes
    // that are lent until this returns.
    let (writing, data) = unsafe {
        let none: &[u8] = &[];
        let data =
            if bytes == 0 { none } else { std::slice::from_raw_parts(data.cast::<u8>(), bytes) };
        (&mut *userdata.cast::<Writing<'_>>(), data)
    };
    let Writing { to, result, panic } = writing;
    guard(panic, 1, || {
        *result = to.write_all(data);
        i32::from(result.is_err())
    })
}

/// Writes what a function of the library gives piece by piece.
pub(crate) fn write(
    to: &mut dyn Write,
    call: impl FnOnce(sys::rl_write_fn, *mut c_void, *mut sys::rl_error) -> sys::rl_status,
) -> Result<()> {
    let mut writing = Writing { to, result: Ok(()), panic: None };
    let userdata: *mut Writing<'_> = &mut writing;
    let done = check(|error| call(Some(write_piece), userdata.cast(), error));
    go_on(writing.panic);
    match writing.result {
        Err(error) => Err(Error::new(Code::AccessFailed, format!("the writer failed: {error}"))),
        Ok(()) => done,
    }
}

struct Listening<'l> {
    listener: &'l mut dyn FnMut(&Piece<'_>) -> ControlFlow<()>,
    panic: Panic,
}

unsafe extern "C" fn tell_piece(userdata: *mut c_void, piece: *const sys::rl_piece) -> i32 {
    // SAFETY: generate() gives a Listening that nobody else uses during its call, and the library a
    // piece that is lent until this returns.
    let (listening, piece) =
        unsafe { (&mut *userdata.cast::<Listening<'_>>(), Piece::of(&*piece)) };
    let Listening { listener, panic } = listening;
    guard(panic, 1, || i32::from(listener(&piece).is_break()))
}

/// Generates texts: `call` is given the prompt, its length, the options, the callback with its data,
/// the statistics and the error.
pub(crate) fn generate(
    prompt: &[i32],
    request: &Request,
    listener: &mut dyn FnMut(&Piece<'_>) -> ControlFlow<()>,
    call: impl FnOnce(
        *const i32,
        usize,
        &sys::rl_generate_options,
        sys::rl_piece_fn,
        *mut c_void,
        &mut sys::rl_statistics,
        *mut sys::rl_error,
    ) -> sys::rl_status,
) -> Result<Statistics> {
    let mut statistics = sys::rl_statistics::default();
    let mut listening = Listening { listener, panic: None };
    let userdata: *mut Listening<'_> = &mut listening;
    let done = request.lend(|options| {
        check(|error| {
            let (data, count, told) = (prompt.as_ptr(), prompt.len(), &mut statistics);
            call(data, count, options, Some(tell_piece), userdata.cast(), told, error)
        })
    });
    go_on(listening.panic);
    done?;
    Ok(Statistics::of(&statistics))
}
