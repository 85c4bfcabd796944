//! Tensors: views of memory, and tensors that have memory of their own.

use std::fmt;
use std::marker::PhantomData;

use rushlight_sys as sys;

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};

const MAX_RANK: usize = sys::RL_MAX_RANK;

/// Sizes and strides of a tensor over memory that it borrows.
///
/// As an input it may have any strides. An output has those of its dim order: [`as_slice`] has the
/// elements where they lie if that is row-major order, [`to_vec`] copies them into it.
///
/// [`as_slice`]: TensorView::as_slice
/// [`to_vec`]: TensorView::to_vec
#[derive(Clone, Copy)]
pub struct TensorView<'a> {
    data: *const u8, // the element at index 0
    dtype: DType,
    rank: usize,
    sizes: [i32; MAX_RANK],
    strides: [i32; MAX_RANK],
    memory: PhantomData<&'a [u8]>,
}

// SAFETY: it is a shared reference to plain memory.
unsafe impl Send for TensorView<'_> {}
// SAFETY: as above.
unsafe impl Sync for TensorView<'_> {}

/// The number of elements; an error for more dimensions than there may be, and for sizes that no
/// tensor has.
fn count_elements(sizes: &[i32]) -> Result<usize> {
    if sizes.len() > MAX_RANK {
        let text = format!("{} dimensions: a tensor has at most {MAX_RANK}", sizes.len());
        return Err(Error::argument(text));
    }
    let mut count: usize = 1;
    let mut is_empty = false;
    for size in sizes {
        let size = usize::try_from(*size)
            .map_err(|_| Error::argument(format!("the sizes {sizes:?}: {size} is negative")))?;
        is_empty |= size == 0;
        count = count.saturating_mul(size.max(1));
    }
    if count > isize::MAX as usize / 16 {
        return Err(Error::argument(format!(
            "the sizes {sizes:?}: no memory has so many elements"
        )));
    }
    Ok(if is_empty { 0 } else { count })
}

/// Row-major strides.
fn strides_of(sizes: &[i32]) -> Result<[i32; MAX_RANK]> {
    let mut strides = [0; MAX_RANK];
    let mut next: i64 = 1;
    for (k, size) in sizes.iter().enumerate().rev() {
        strides[k] = i32::try_from(next)
            .map_err(|_| Error::argument(format!("the sizes {sizes:?}: strides have 31 bits")))?;
        next = next.saturating_mul(i64::from(*size).max(1));
    }
    Ok(strides)
}

fn pad(sizes: &[i32]) -> [i32; MAX_RANK] {
    let mut padded = [0; MAX_RANK];
    padded[..sizes.len()].copy_from_slice(sizes);
    padded
}

impl<'a> TensorView<'a> {
    /// Elements in row-major order.
    pub fn new<T: Element>(data: &'a [T], sizes: &[i32]) -> Result<TensorView<'a>> {
        TensorView::from_bytes(T::DTYPE, as_bytes(data), sizes)
    }

    /// Elements of any dtype in row-major order, as bytes: for those that Rust has no type for.
    /// Bytes of [`DType::Bool`] are 0 or 1.
    pub fn from_bytes(dtype: DType, data: &'a [u8], sizes: &[i32]) -> Result<TensorView<'a>> {
        let wanted = count_elements(sizes)? * dtype.bytes();
        if data.len() != wanted {
            let text = format!(
                "{} bytes for the sizes {sizes:?}: {dtype} of these sizes have {wanted}",
                data.len()
            );
            return Err(Error::argument(text));
        }
        Ok(TensorView {
            data: data.as_ptr(),
            dtype,
            rank: sizes.len(),
            sizes: pad(sizes),
            strides: strides_of(sizes)?,
            memory: PhantomData,
        })
    }

    /// Elements with strides, in elements; `data[first]` is the one at index 0. Strides may be 0
    /// and negative.
    pub fn with_strides<T: Element>(
        data: &'a [T],
        first: usize,
        sizes: &[i32],
        strides: &[i32],
    ) -> Result<TensorView<'a>> {
        if sizes.len() != strides.len() {
            let text = format!("{} strides for {} sizes", strides.len(), sizes.len());
            return Err(Error::argument(text));
        }
        let count = count_elements(sizes)?;
        let (mut least, mut most) = (first as i128, first as i128);
        for (size, stride) in sizes.iter().zip(strides) {
            let reach = i128::from(*size - 1) * i128::from(*stride);
            least += reach.min(0);
            most += reach.max(0);
        }
        if count > 0 && (least < 0 || most >= data.len() as i128) {
            let text = format!(
                "the sizes {sizes:?} with the strides {strides:?} from element {first} on reach \
                 from element {least} to {most}: there are {}",
                data.len()
            );
            return Err(Error::argument(text));
        }
        Ok(TensorView {
            data: if count > 0 { data[first..].as_ptr().cast() } else { data.as_ptr().cast() },
            dtype: T::DTYPE,
            rank: sizes.len(),
            sizes: pad(sizes),
            strides: pad(strides),
            memory: PhantomData,
        })
    }

    /// A tensor that the library describes.
    ///
    /// # Safety
    /// The value is of kind `RL_TENSOR`, and its memory is lent for as long as 'a.
    pub(crate) unsafe fn of_value(value: &sys::rl_value_v1) -> Result<TensorView<'a>> {
        let rank = value.rank as usize;
        let listed = |list: *const i32| match rank {
            0 => &[],
            // SAFETY: the library's lists have `rank` items.
            _ => unsafe { std::slice::from_raw_parts(list, rank) },
        };
        Ok(TensorView {
            data: value.data.cast::<u8>().cast_const(),
            dtype: DType::of(value.dtype)?,
            rank,
            sizes: pad(listed(value.sizes)),
            strides: pad(listed(value.strides)),
            memory: PhantomData,
        })
    }

    /// The state that the library describes.
    ///
    /// # Safety
    /// As `of_value`.
    pub(crate) unsafe fn of_state(info: &sys::rl_state_info) -> Result<TensorView<'a>> {
        let rank = info.rank as usize;
        let mut strides = [0; MAX_RANK];
        let mut next = 1;
        for dim in info.dim_order[..rank].iter().rev() {
            strides[usize::from(*dim)] = next;
            next *= info.sizes[usize::from(*dim)].max(1);
        }
        let (data, dtype) = (info.data.cast::<u8>().cast_const(), DType::of(info.dtype)?);
        Ok(TensorView { data, dtype, rank, sizes: info.sizes, strides, memory: PhantomData })
    }

    /// As the library takes it, for as long as this view stays where it is.
    pub(crate) fn value(&self) -> sys::rl_value_v1 {
        sys::rl_value_v1 {
            kind: sys::RL_TENSOR,
            data: self.data.cast_mut().cast(),
            sizes: self.sizes.as_ptr(),
            strides: self.strides.as_ptr(),
            rank: self.rank as u32,
            dtype: self.dtype.number(),
            ..Default::default()
        }
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The size of each dimension.
    pub fn sizes(&self) -> &[i32] {
        &self.sizes[..self.rank]
    }

    /// The distance from an element to the next in each dimension, in elements.
    pub fn strides(&self) -> &[i32] {
        &self.strides[..self.rank]
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        if self.sizes().contains(&0) {
            return 0;
        }
        self.sizes().iter().map(|size| *size as usize).product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the elements lie without gaps in row-major order.
    pub fn is_row_major(&self) -> bool {
        let mut next: i64 = 1;
        for k in (0..self.rank).rev() {
            if self.sizes[k] > 1 && i64::from(self.strides[k]) != next {
                return false;
            }
            next *= i64::from(self.sizes[k]);
        }
        true
    }

    /// The bytes of the elements where they lie; an error unless that is row-major order.
    pub fn as_bytes(&self) -> Result<&'a [u8]> {
        if self.is_empty() {
            return Ok(&[]);
        }
        if !self.is_row_major() {
            let text = format!("the strides {:?} are not row-major: use to_vec()", self.strides());
            return Err(Error::argument(text));
        }
        // SAFETY: there are so many elements without gaps, lent for as long as 'a.
        Ok(unsafe { std::slice::from_raw_parts(self.data, self.len() * self.dtype.bytes()) })
    }

    /// The elements where they lie; an error for another dtype, or unless they are in row-major
    /// order.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T]> {
        self.check(T::DTYPE)?;
        let bytes = self.as_bytes()?;
        if bytes.is_empty() {
            return Ok(&[]);
        }
        if bytes.as_ptr() as usize % std::mem::align_of::<T>() != 0 {
            return Err(Error::argument(format!("the memory is not aligned for {}", T::DTYPE)));
        }
        // SAFETY: aligned bytes of as many elements, for which all bits are values.
        Ok(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), self.len()) })
    }

    /// A copy of the elements in row-major order; an error for another dtype.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check(T::DTYPE)?;
        let mut elements = vec![T::default(); self.len()];
        self.copy_to(as_bytes_mut(&mut elements));
        Ok(elements)
    }

    /// A copy of the elements of a [`DType::Bool`] tensor in row-major order.
    pub fn to_bools(&self) -> Result<Vec<bool>> {
        self.check(DType::Bool)?;
        let mut bytes = vec![0; self.len()];
        self.copy_to(&mut bytes);
        Ok(bytes.into_iter().map(|byte| byte != 0).collect())
    }

    /// A copy with memory of its own, in row-major order.
    pub fn to_tensor(&self) -> Result<Tensor> {
        let mut tensor = Tensor::zeros(self.dtype, self.sizes())?;
        self.copy_to(tensor.as_bytes_mut());
        Ok(tensor)
    }

    fn check(&self, wanted: DType) -> Result<()> {
        if self.dtype == wanted {
            return Ok(());
        }
        Err(Error::argument(format!("the tensor is {}, not {wanted}", self.dtype)))
    }

    /// Copies the elements in row-major order.
    fn copy_to(&self, to: &mut [u8]) {
        if let Ok(bytes) = self.as_bytes() {
            to.copy_from_slice(bytes);
            return;
        }
        let mut index = [0; MAX_RANK];
        let mut from: isize = 0;
        for element in to.chunks_exact_mut(self.dtype.bytes()) {
            let offset = from * self.dtype.bytes() as isize;
            // SAFETY: the element at an index below the sizes.
            let bytes =
                unsafe { std::slice::from_raw_parts(self.data.offset(offset), self.dtype.bytes()) };
            element.copy_from_slice(bytes);
            for k in (0..self.rank).rev() {
                from += self.strides[k] as isize;
                index[k] += 1;
                if index[k] < self.sizes[k] {
                    break;
                }
                from -= self.strides[k] as isize * self.sizes[k] as isize;
                index[k] = 0;
            }
        }
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.sizes())
    }
}

/// Elements in row-major order, in memory of its own.
#[derive(Clone, PartialEq)]
pub struct Tensor {
    dtype: DType,
    sizes: Vec<i32>,
    memory: Vec<u64>, // aligned for all dtypes
    bytes: usize,
}

impl Tensor {
    /// A copy of elements in row-major order.
    pub fn new<T: Element>(elements: &[T], sizes: &[i32]) -> Result<Tensor> {
        TensorView::new(elements, sizes)?.to_tensor()
    }

    /// Zeros.
    pub fn zeros(dtype: DType, sizes: &[i32]) -> Result<Tensor> {
        let bytes = count_elements(sizes)? * dtype.bytes();
        strides_of(sizes)?;
        Ok(Tensor { dtype, sizes: sizes.to_vec(), memory: vec![0; bytes.div_ceil(8)], bytes })
    }

    /// The whole tensor.
    pub fn view(&self) -> TensorView<'_> {
        TensorView::from_bytes(self.dtype, self.as_bytes(), &self.sizes)
            .unwrap_or_else(|error| unreachable!("sizes that were checked: {error}"))
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The size of each dimension.
    pub fn sizes(&self) -> &[i32] {
        &self.sizes
    }

    /// The elements; an error for another dtype.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.view().as_slice()
    }

    /// The elements; an error for another dtype.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.view().check(T::DTYPE)?;
        let (data, count) = (self.memory.as_mut_ptr(), self.bytes / self.dtype.bytes());
        // SAFETY: aligned memory of as many elements, for which all bits are values.
        Ok(unsafe { std::slice::from_raw_parts_mut(data.cast(), count) })
    }

    /// The bytes of the elements.
    pub fn as_bytes(&self) -> &[u8] {
        &as_bytes(&self.memory)[..self.bytes]
    }

    /// The bytes of the elements.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut as_bytes_mut(&mut self.memory)[..self.bytes]
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.sizes)
    }
}

/// Memory of the caller for an output.
pub struct MemoryMut<'a> {
    pub(crate) data: *mut u8,
    pub(crate) bytes: usize,
    pub(crate) dtype: DType,
    memory: PhantomData<&'a mut [u8]>,
}

impl<'a, T: Element> From<&'a mut [T]> for MemoryMut<'a> {
    fn from(elements: &'a mut [T]) -> Self {
        let bytes = as_bytes_mut(elements);
        let (data, bytes) = (bytes.as_mut_ptr(), bytes.len());
        MemoryMut { data, bytes, dtype: T::DTYPE, memory: PhantomData }
    }
}

impl<'a> From<&'a mut Tensor> for MemoryMut<'a> {
    fn from(tensor: &'a mut Tensor) -> Self {
        let dtype = tensor.dtype;
        let bytes = tensor.as_bytes_mut();
        let (data, bytes) = (bytes.as_mut_ptr(), bytes.len());
        MemoryMut { data, bytes, dtype, memory: PhantomData }
    }
}

fn as_bytes<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: plain numbers.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), std::mem::size_of_val(elements)) }
}

fn as_bytes_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    let bytes = std::mem::size_of_val(elements);
    // SAFETY: plain numbers, for which all bits are values.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), bytes) }
}
