//! A library with a kernel, in Rust alone: `acme::twice.out(Tensor x, *, Tensor(a!) out) ->
//! Tensor(a!)` for float32 in row-major order. `cargo build --example twice` makes `libtwice.so`,
//! which `ModuleOptions::kernel_libraries` and `rl.load(kernels=...)` take.

use std::ffi::c_void;

use rushlight_sys::{
    rl_kernel_call_v1, rl_kernel_v1, rl_text_v1, rl_value_v1, RL_FLOAT32, RL_INTERNAL,
    RL_KERNEL_V1_VERSION, RL_NOT_SUPPORTED, RL_OK,
};

struct Table([rl_kernel_v1; 1]);

// SAFETY: constants.
unsafe impl Sync for Table {}

static KERNELS: Table = Table([rl_kernel_v1 {
    version: RL_KERNEL_V1_VERSION,
    size: std::mem::size_of::<rl_kernel_v1>() as u32,
    name: c"acme::twice.out".as_ptr(),
    signature: c"tw=".as_ptr(),
    key: std::ptr::null(),
    self_: std::ptr::null_mut(),
    run: Some(run),
    flags: 0,
}]);

/// The kernels of this library, and NULL behind the last.
#[no_mangle]
pub extern "C" fn rl_get_kernel_v1(index: u32) -> *const rl_kernel_v1 {
    KERNELS.0.get(index as usize).map_or(std::ptr::null(), |kernel| kernel)
}

unsafe extern "C" fn run(_: *mut c_void, call: *const rl_kernel_call_v1) -> i32 {
    // SAFETY: the runtime gives a call that is valid until this returns.
    unsafe { twice(&*call) }.err().unwrap_or(RL_OK)
}

/// # Safety
/// The call is that of a run.
unsafe fn twice(call: &rl_kernel_call_v1) -> Result<(), i32> {
    // SAFETY: the host's functions live as long as the call, and what they fill does, too.
    unsafe {
        let host = &*call.host;
        let (Some(value), Some(resize), Some(explain)) = (host.value, host.resize, host.explain)
        else {
            return Err(RL_INTERNAL);
        };
        let check = |code| if code == RL_OK { Ok(()) } else { Err(code) };
        let (mut x, mut out) = (rl_value_v1::default(), rl_value_v1::default());
        check(value(call.context, 0, &mut x))?;
        let orders = std::slice::from_raw_parts(x.dim_order, x.rank as usize);
        if x.dtype != RL_FLOAT32 || orders.iter().enumerate().any(|(k, dim)| k != *dim as usize) {
            let text = "x must be float32 in row-major order";
            explain(call.context, rl_text_v1 { data: text.as_ptr().cast(), size: text.len() });
            return Err(RL_NOT_SUPPORTED);
        }
        check(resize(call.context, 1, 0, x.sizes, x.rank))?;
        check(value(call.context, 1, &mut out))?;
        let count = x.nbytes / std::mem::size_of::<f32>();
        let (from, to) = (x.data.cast::<f32>(), out.data.cast::<f32>());
        for i in 0..count {
            *to.add(i) = *from.add(i) * 2.0;
        }
    }
    Ok(())
}
