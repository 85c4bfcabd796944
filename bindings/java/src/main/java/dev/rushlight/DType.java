package dev.rushlight;

/** The type of a tensor's elements. */
public enum DType {
  UINT8(0, 1),
  INT8(1, 1),
  INT16(2, 2),
  INT32(3, 4),
  INT64(4, 8),
  FLOAT16(5, 2),
  FLOAT32(6, 4),
  FLOAT64(7, 8),
  COMPLEX64(9, 8),
  COMPLEX128(10, 16),
  BOOL(11, 1),
  BFLOAT16(15, 2),
  UINT16(27, 2),
  UINT32(28, 4),
  UINT64(29, 8);

  final int number;
  /** The bytes of an element. */
  public final int bytes;

  DType(int number, int bytes) {
    this.number = number;
    this.bytes = bytes;
  }

  static DType of(int number) {
    for (DType dtype : values()) {
      if (dtype.number == number) return dtype;
    }
    throw new IllegalArgumentException("no dtype has the number " + number);
  }
}
