package dev.rushlight;

/** An input or an output of a method. */
public final class ValueInfo {
  /** The name of an input, such as "x"; empty if the program has none. */
  public final String name;

  /** "tensor", "int", "double", "bool", "string", "none" or "list". */
  public final String kind;

  /** Of a tensor; otherwise null. */
  public final DType dtype;

  private final int[] minSizes;
  private final int[] maxSizes;

  // Called by the native library.
  ValueInfo(byte[] name, int kind, int dtype, int[] minSizes, int[] maxSizes) {
    String[] kinds = {"none", "tensor", "string", "double", "int", "bool", "list"};
    this.name = Rushlight.text(name);
    this.kind = kinds[kind];
    this.dtype = kind == 1 ? DType.of(dtype) : null;
    this.minSizes = minSizes;
    this.maxSizes = maxSizes;
  }

  /** The least sizes of a tensor. */
  public int[] minSizes() {
    return minSizes.clone();
  }

  /** The greatest sizes of a tensor; Integer.MAX_VALUE: no bound. */
  public int[] maxSizes() {
    return maxSizes.clone();
  }
}
