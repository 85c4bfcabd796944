//! What ends a call from another thread.

use rushlight_sys as sys;

use crate::error::{check, Result};

#[derive(Clone, Copy, Debug)]
enum Cancelled {
    Module(*mut sys::rl_module),
    Session(*mut sys::rl_session),
}

/// Ends what a module or a session does on another thread.
#[derive(Clone, Debug)]
pub struct Canceller(Cancelled);

// SAFETY: any thread may cancel. The handle is a number: one that was closed is refused.
unsafe impl Send for Canceller {}
// SAFETY: as above.
unsafe impl Sync for Canceller {}

impl Canceller {
    pub(crate) fn of_module(module: *mut sys::rl_module) -> Canceller {
        Canceller(Cancelled::Module(module))
    }

    pub(crate) fn of_session(session: *mut sys::rl_session) -> Canceller {
        Canceller(Cancelled::Session(session))
    }

    /// Ends a run of a module, which fails with [`Code::Cancelled`](crate::Code::Cancelled), before
    /// its next operator; or what a session generates, at the next token. Does nothing if there is
    /// none; [`Code::InvalidState`](crate::Code::InvalidState) if the module or the session is
    /// closed.
    pub fn cancel(&self) -> Result<()> {
        // SAFETY: a handle, open or not.
        check(|error| unsafe {
            match self.0 {
                Cancelled::Module(module) => sys::rl_module_cancel(module, error),
                Cancelled::Session(session) => sys::rl_session_cancel(session, error),
            }
        })
    }
}
