//! Programs in memory.

use std::fmt;
use std::sync::Arc;

/// Bytes that stay where they are and as they are as long as this lives.
pub(crate) trait Memory: Send + Sync {
    /// Where they are, and how many.
    fn parts(&self) -> (*const u8, usize);
}

impl fmt::Debug for dyn Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.parts().1)
    }
}

struct Kept<M>(M);

impl<M: AsRef<[u8]> + Send + Sync> Memory for Kept<M> {
    fn parts(&self) -> (*const u8, usize) {
        let bytes = self.0.as_ref();
        (bytes.as_ptr(), bytes.len())
    }
}

/// Takes the bytes over: nobody can change them any more.
pub(crate) fn keep<M: AsRef<[u8]> + Send + Sync + 'static>(memory: M) -> Arc<dyn Memory> {
    Arc::new(Kept(memory))
}
