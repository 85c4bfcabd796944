package dev.rushlight;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A program that is open. One thread at a time may use it, except for {@link #cancel()}; {@link
 * #copy()} makes another for another thread.
 */
public final class Module extends Handle {
  static {
    Rushlight.load();
  }

  private final ByteBuffer program; // stays while the module reads it

  private Module(long handle, ByteBuffer program) {
    super(handle);
    this.program = program;
  }

  /** Opens a file. {@code threads} 0: one for each core; {@code memoryLimit} 0: none. */
  public static Module open(Path path, int threads, long memoryLimit) {
    return new Module(openFile(Rushlight.text(path.toString()), threads, memoryLimit), null);
  }

  /** Opens a file. */
  public static Module open(Path path) {
    return open(path, 0, 0);
  }

  /** Opens a program in a direct buffer, which must stay as it is until the module is closed. */
  public static Module open(ByteBuffer program) {
    if (!program.isDirect()) throw new IllegalArgumentException("the buffer is not direct");
    return new Module(openBuffer(program, program.capacity(), 0, 0), program);
  }

  /** The names of the methods. */
  public List<String> methods() {
    List<String> names = new ArrayList<>();
    for (byte[] name : methodNames(handle())) names.add(Rushlight.text(name));
    return names;
  }

  /** The inputs of a method. */
  public List<ValueInfo> inputs(String method) {
    return List.of(describe(handle(), Rushlight.text(method), true));
  }

  /** The outputs of a method. */
  public List<ValueInfo> outputs(String method) {
    return List.of(describe(handle(), Rushlight.text(method), false));
  }

  /**
   * Runs a method. Inputs are of {@link Tensor}, Long or Integer, Double, Boolean, String, or null;
   * so are the outputs, whose memory is their own.
   */
  public List<Object> run(String method, Object... inputs) {
    Object[] flat = new Object[inputs.length];
    int[] kinds = new int[inputs.length];
    int[] dtypes = new int[inputs.length];
    int[][] sizes = new int[inputs.length][];
    for (int i = 0; i < inputs.length; i++) {
      Object input = inputs[i] instanceof Integer ? Long.valueOf((Integer) inputs[i]) : inputs[i];
      flat[i] = input instanceof String ? Rushlight.text((String) input) : input;
      if (input instanceof Tensor) {
        Tensor tensor = (Tensor) input;
        kinds[i] = 1;
        flat[i] = tensor.data();
        dtypes[i] = tensor.dtype().number;
        sizes[i] = tensor.sizes();
      } else if (input != null) {
        kinds[i] = kindOf(input, i);
      }
    }
    byte[] name = Rushlight.text(method);
    return Arrays.asList(wrap(run(handle(), name, flat, kinds, dtypes, sizes)));
  }

  private static int kindOf(Object input, int index) {
    if (input instanceof String) return 2;
    if (input instanceof Double) return 3;
    if (input instanceof Long) return 4;
    if (input instanceof Boolean) return 5;
    throw new IllegalArgumentException(
        "input " + index + " is a " + input.getClass().getName() + ": give a Tensor or a scalar");
  }

  /** Ends the run that another thread is in; it fails with {@link Rushlight#CANCELLED}. */
  public void cancel() {
    cancel(handle());
  }

  /** A module on the same program with its own memory and state. */
  public Module copy() {
    return new Module(copy(handle(), false), program);
  }

  /** A copy with the current state. */
  public Module fork() {
    return new Module(copy(handle(), true), program);
  }

  /** All state as bytes, for {@link #restore(byte[])}. */
  public byte[] snapshot() {
    return snapshot(handle());
  }

  /** Puts the state of a snapshot back. */
  public void restore(byte[] snapshot) {
    restore(handle(), snapshot);
  }

  /** The state has its initial content again. */
  public void resetState() {
    resetState(handle());
  }

  /** Random operators draw as after torch.manual_seed(seed). */
  public void seed(long seed) {
    seed(handle(), seed);
  }

  @Override
  void closeHandle(long handle) {
    closeModule(handle);
  }

  // Outputs come as {dtype, sizes, buffer} for tensors.
  private static Object[] wrap(Object[] outputs) {
    for (int i = 0; i < outputs.length; i++) {
      if (outputs[i] instanceof byte[]) outputs[i] = Rushlight.text((byte[]) outputs[i]);
      if (!(outputs[i] instanceof Object[])) continue;
      Object[] parts = (Object[]) outputs[i];
      outputs[i] =
          Tensor.wrap(DType.of(((int[]) parts[0])[0]), (ByteBuffer) parts[2], (int[]) parts[1]);
    }
    return outputs;
  }

  private static native long openFile(byte[] path, int threads, long memoryLimit);

  private static native long openBuffer(
      ByteBuffer program, long bytes, int threads, long memoryLimit);

  private static native void closeModule(long module);

  private static native byte[][] methodNames(long module);

  private static native ValueInfo[] describe(long module, byte[] method, boolean isInput);

  private static native Object[] run(
      long module, byte[] method, Object[] inputs, int[] kinds, int[] dtypes, int[][] sizes);

  private static native void cancel(long module);

  private static native long copy(long module, boolean withState);

  private static native byte[] snapshot(long module);

  private static native void restore(long module, byte[] snapshot);

  private static native void resetState(long module);

  private static native void seed(long module, long seed);
}
