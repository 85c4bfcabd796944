package dev.rushlight;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Elements in row-major order, in a direct buffer of the machine's byte order. */
public final class Tensor {
  private final DType dtype;
  private final int[] sizes;
  private final ByteBuffer data;

  private Tensor(DType dtype, int[] sizes, ByteBuffer data) {
    this.dtype = dtype;
    this.sizes = sizes;
    this.data = data;
  }

  /** A tensor of zeros. */
  public static Tensor zeros(DType dtype, int... sizes) {
    long bytes = bytesOf(dtype, sizes);
    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("a buffer has no room for " + bytes + " bytes");
    }
    return wrap(dtype, ByteBuffer.allocateDirect((int) bytes), sizes);
  }

  /** A tensor of float32. */
  public static Tensor of(float[] values, int... sizes) {
    Tensor tensor = zeros(DType.FLOAT32, sizes);
    if (bytesOf(DType.FLOAT32, sizes) != 4L * values.length) {
      throw new IllegalArgumentException(
          values.length + " values for the sizes " + Arrays.toString(sizes));
    }
    tensor.data.asFloatBuffer().put(values);
    return tensor;
  }

  /** A tensor of int64. */
  public static Tensor of(long[] values, int... sizes) {
    Tensor tensor = zeros(DType.INT64, sizes);
    if (bytesOf(DType.INT64, sizes) != 8L * values.length) {
      throw new IllegalArgumentException(
          values.length + " values for the sizes " + Arrays.toString(sizes));
    }
    tensor.data.asLongBuffer().put(values);
    return tensor;
  }

  /** A tensor over a direct buffer, from its start on, which it shares. */
  public static Tensor wrap(DType dtype, ByteBuffer data, int... sizes) {
    if (!data.isDirect()) throw new IllegalArgumentException("the buffer is not direct");
    if (data.capacity() < bytesOf(dtype, sizes)) {
      throw new IllegalArgumentException(
          "the buffer has " + data.capacity() + " bytes, too few for " + Arrays.toString(sizes));
    }
    ByteBuffer view = data.duplicate();
    view.clear();
    return new Tensor(dtype, sizes.clone(), view.order(ByteOrder.nativeOrder()));
  }

  private static long bytesOf(DType dtype, int[] sizes) {
    long count = dtype.bytes;
    for (int size : sizes) {
      if (size < 0) throw new IllegalArgumentException("a size is " + size);
      count = Math.multiplyExact(count, (long) size);
    }
    return count;
  }

  /** The type of the elements. */
  public DType dtype() {
    return dtype;
  }

  /** The sizes of the dimensions. */
  public int[] sizes() {
    return sizes.clone();
  }

  /** All bytes; the buffer shares the tensor's memory, and has a position of its own. */
  public ByteBuffer data() {
    return data.duplicate().order(ByteOrder.nativeOrder());
  }

  /** The elements of a float32 tensor. */
  public float[] floats() {
    check(DType.FLOAT32);
    float[] values = new float[(int) (bytesOf(dtype, sizes) / 4)];
    data.asFloatBuffer().get(values);
    return values;
  }

  /** The elements of an int64 tensor. */
  public long[] longs() {
    check(DType.INT64);
    long[] values = new long[(int) (bytesOf(dtype, sizes) / 8)];
    data.asLongBuffer().get(values);
    return values;
  }

  private void check(DType wanted) {
    if (dtype != wanted) throw new IllegalStateException("the tensor is " + dtype);
  }
}
