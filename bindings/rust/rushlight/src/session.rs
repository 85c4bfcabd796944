//! Sessions of language models.

use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rushlight_sys as sys;

use crate::callback;
use crate::cancel::Canceller;
use crate::error::{c_path, check, Code, Error, Result};
use crate::generate::{GenerateOptions, Piece, Request, Statistics};
use crate::llm::collect;
use crate::memory::Memory;

/// A text that is kept, with its cache. One thread at a time uses it, which the compiler holds.
///
/// ```compile_fail
/// fn is_shared<T: Sync>() {}
/// is_shared::<rushlight::Session>();
/// ```
#[derive(Debug)]
pub struct Session {
    handle: *mut sys::rl_session,
    program: Option<Arc<dyn Memory>>,
}

// SAFETY: any thread may use the handle, one at a time: there is no `Sync`.
unsafe impl Send for Session {}

/// A session's handle on the thread that generates.
struct Running {
    handle: *mut sys::rl_session,
    _program: Option<Arc<dyn Memory>>,
}

// SAFETY: as for the session, which is borrowed meanwhile.
unsafe impl Send for Running {}

impl Running {
    fn generate(
        &self,
        prompt: &[i32],
        request: &Request,
        listener: &mut dyn FnMut(&Piece<'_>) -> ControlFlow<()>,
    ) -> Result<Statistics> {
        callback::generate(
            prompt,
            request,
            listener,
            |data, count, options, write, userdata, told, error| {
                // SAFETY: a handle, and what lives until this returns.
                unsafe {
                    sys::rl_session_generate(
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
}

impl Session {
    pub(crate) fn new(handle: *mut sys::rl_session, program: Option<Arc<dyn Memory>>) -> Session {
        Session { handle, program }
    }

    fn running(&self) -> Running {
        Running { handle: self.handle, _program: self.program.clone() }
    }

    /// Closes it, as dropping it does, which cannot say what fails.
    pub fn close(mut self) -> Result<()> {
        let handle = std::mem::replace(&mut self.handle, ptr::null_mut());
        // SAFETY: a handle, which is not used after this.
        check(|error| unsafe { sys::rl_session_close(handle, error) })
    }

    /// Adds the prompt to the text, and then what is generated; returns when it has ended.
    /// `listener` is told of pieces and may break. Its panic comes out of this.
    pub fn generate(
        &mut self,
        prompt: &[i32],
        options: &GenerateOptions<'_>,
        mut listener: impl FnMut(&Piece<'_>) -> ControlFlow<()>,
    ) -> Result<Statistics> {
        self.running().generate(prompt, &options.to_request(), &mut listener)
    }

    /// The same as an iterator of texts, which a thread of its own generates. Dropping it ends the
    /// text.
    pub fn texts<'s>(
        &'s mut self,
        prompt: &[i32],
        options: &GenerateOptions<'s>,
    ) -> Result<Texts<'s>> {
        let (running, prompt, request) = (self.running(), prompt.to_vec(), options.to_request());
        let (sender, receiver) = sync_channel(64);
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_stopped);
        let generate = move || {
            running.generate(&prompt, &request, &mut |piece| {
                let is_read = piece.text.is_empty() || sender.send(piece.text.to_owned()).is_ok();
                if is_read && !stop.load(Ordering::Relaxed) {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })
        };
        let thread = thread::Builder::new().name("rushlight texts".into()).spawn(generate);
        let thread = thread.map_err(|error| {
            Error::new(Code::OutOfResources, format!("no thread for the texts: {error}"))
        })?;
        let (receiver, thread) = (Some(receiver), Some(thread));
        Ok(Texts { receiver, thread, is_stopped, statistics: None, session: PhantomData })
    }

    /// What ends a text of this session from any thread.
    pub fn canceller(&self) -> Canceller {
        Canceller::of_session(self.handle)
    }

    /// A session with the same text, which shares its cache.
    pub fn fork(&self) -> Result<Session> {
        let mut copy = ptr::null_mut();
        // SAFETY: a handle, and one that lives until this returns.
        check(|error| unsafe { sys::rl_session_fork(self.handle, &mut copy, error) })?;
        Ok(Session::new(copy, self.program.clone()))
    }

    /// Drops the last tokens.
    pub fn rewind(&mut self, count: usize) -> Result<()> {
        // SAFETY: a handle.
        check(|error| unsafe { sys::rl_session_rewind(self.handle, count, error) })
    }

    /// Replaces the text; the cache of what both begin with is kept.
    pub fn set_tokens(&mut self, tokens: &[i32]) -> Result<()> {
        // SAFETY: a handle, and tokens that live until this returns.
        check(|error| unsafe {
            sys::rl_session_set_tokens(self.handle, tokens.as_ptr(), tokens.len(), error)
        })
    }

    /// The tokens of the text.
    pub fn tokens(&self) -> Result<Vec<i32>> {
        // SAFETY: a handle, and an array that lives until this returns.
        collect(|to, capacity, count, error| unsafe {
            sys::rl_session_tokens(self.handle, to, capacity, count, error)
        })
    }

    /// Writes the text and its cache to a file, for [`LanguageModel::restore`].
    ///
    /// [`LanguageModel::restore`]: crate::LanguageModel::restore
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_path(path.as_ref())?;
        // SAFETY: a handle, and a text that lives until this returns.
        check(|error| unsafe { sys::rl_session_save(self.handle, path.as_ptr(), error) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: a handle that is not used after this; NULL is nothing to close.
        let _ = check(|error| unsafe { sys::rl_session_close(self.handle, error) });
    }
}

/// What a session generates, text by text; an error is the last item. See [`Session::texts`].
pub struct Texts<'s> {
    receiver: Option<Receiver<String>>,
    thread: Option<JoinHandle<Result<Statistics>>>,
    is_stopped: Arc<AtomicBool>,
    statistics: Option<Statistics>,
    session: PhantomData<&'s mut Session>,
}

impl Texts<'_> {
    /// What was done, once the texts have ended.
    pub fn statistics(&self) -> Option<Statistics> {
        self.statistics
    }

    /// What the thread ended with; `None` if that was said before.
    fn join(&mut self) -> Option<Result<()>> {
        let ended = self.thread.take()?.join().unwrap_or_else(|_| {
            Err(Error::new(Code::Internal, "the thread that generates has panicked"))
        });
        Some(ended.map(|statistics| self.statistics = Some(statistics)))
    }
}

impl Iterator for Texts<'_> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Result<String>> {
        let text = self.receiver.as_ref().and_then(|receiver| receiver.recv().ok());
        text.map(Ok).or_else(|| self.join()?.err().map(Err))
    }
}

impl Drop for Texts<'_> {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        drop(self.receiver.take()); // a piece that waits finds nobody
        let _ = self.join();
    }
}
