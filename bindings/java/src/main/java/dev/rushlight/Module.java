package dev.rushlight;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A program that is open. One thread at a time may use it, except for {@link #cancel()}; {@link
 * #copy()} makes another for another thread.
 */
public final class Module extends Handle {
  static {
    Rushlight.load();
  }

  private final ByteBuffer program; // stays while the module reads it
  private final Map<String, Map<Integer, ByteBuffer>> memory = new ConcurrentHashMap<>();

  private Module(long handle, ByteBuffer program) {
    super(handle);
    this.program = program;
  }

  /** Opens a file. */
  public static Module open(Path path, ModuleOptions options) {
    long handle =
        openFile(
            Rushlight.path(path),
            options.numbers(),
            Rushlight.path(options.dataPath),
            Rushlight.paths(options.kernelLibraries),
            Rushlight.paths(options.backendLibraries));
    return new Module(handle, null);
  }

  /** Opens a file. */
  public static Module open(Path path) {
    return open(path, new ModuleOptions());
  }

  /** Opens a program in a direct buffer, which must stay as it is until the module is closed. */
  public static Module open(ByteBuffer program, ModuleOptions options) {
    if (!program.isDirect()) throw new IllegalArgumentException("the buffer is not direct");
    long handle =
        openBuffer(
            program,
            options.numbers(),
            Rushlight.path(options.dataPath),
            Rushlight.paths(options.kernelLibraries),
            Rushlight.paths(options.backendLibraries));
    return new Module(handle, program);
  }

  /** Opens a program in a direct buffer, which must stay as it is until the module is closed. */
  public static Module open(ByteBuffer program) {
    return open(program, new ModuleOptions());
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

  /** What the inputs of a method have to do with each other; a run that breaks it is refused. */
  public List<String> relations(String method) {
    List<String> texts = new ArrayList<>();
    for (byte[] text : relations(handle(), Rushlight.text(method))) texts.add(Rushlight.text(text));
    return texts;
  }

  /** Bytes of the methods that are loaded. */
  public long memoryInUse() {
    return memoryInUse(handle());
  }

  /** Loads a method, which otherwise its first run does. */
  public void load(String method) {
    load(handle(), Rushlight.text(method), true);
  }

  /** Frees a method, its memory and its own state. */
  public void unload(String method) {
    load(handle(), Rushlight.text(method), false);
    memory.remove(method);
  }

  /**
   * Where an output is written from now on; null: memory of its own again. {@link #run} then gives
   * a tensor over that memory.
   */
  public void setOutput(String method, int index, ByteBuffer to) {
    if (to != null && !to.isDirect()) throw new IllegalArgumentException("the buffer is not direct");
    setOutput(handle(), Rushlight.text(method), index, to);
    Map<Integer, ByteBuffer> own = memory.computeIfAbsent(method, name -> new HashMap<>());
    if (to != null) {
      own.put(index, to);
    } else {
      own.remove(index);
    }
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
    Map<Integer, ByteBuffer> own = memory.getOrDefault(method, Map.of());
    int[] kept = own.keySet().stream().mapToInt(Integer::intValue).toArray();
    return Arrays.asList(wrap(run(handle(), name, flat, kinds, dtypes, sizes, kept), own));
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

  /**
   * Records loads and runs from now on, and forgets what was recorded. {@code bytes} 0: 1 MiB for
   * events; {@code valueBytes} 0: 16 MiB for values.
   */
  public void startTrace(TraceValues values, long bytes, long valueBytes) {
    startTrace(handle(), values.ordinal(), bytes, valueBytes);
  }

  /** Records no more, and keeps what was recorded. */
  public void stopTrace() {
    stopTrace(handle());
  }

  /** Writes the trace to a file, and its values to one with ".values" at its end. */
  public void saveTrace(Path path) {
    saveTrace(handle(), Rushlight.path(path));
  }

  /** The report of the last failure, for {@code rushlight explain}; empty if there is none. */
  public byte[] failureReport() {
    return failureReport(handle());
  }

  /** Random operators draw as after torch.manual_seed(seed). */
  public void seed(long seed) {
    seed(handle(), seed);
  }

  @Override
  void closeHandle(long handle) {
    closeModule(handle);
  }

  // Outputs come as {dtype, sizes, buffer} for tensors; the buffer is null in memory of the caller.
  private static Object[] wrap(Object[] outputs, Map<Integer, ByteBuffer> own) {
    for (int i = 0; i < outputs.length; i++) {
      if (outputs[i] instanceof byte[]) outputs[i] = Rushlight.text((byte[]) outputs[i]);
      if (!(outputs[i] instanceof Object[])) continue;
      Object[] parts = (Object[]) outputs[i];
      ByteBuffer data = parts[2] != null ? (ByteBuffer) parts[2] : own.get(i);
      outputs[i] = Tensor.wrap(DType.of(((int[]) parts[0])[0]), data, (int[]) parts[1]);
    }
    return outputs;
  }

  private static native long openFile(
      byte[] path, long[] numbers, byte[] data, byte[][] kernels, byte[][] backends);

  private static native long openBuffer(
      ByteBuffer program, long[] numbers, byte[] data, byte[][] kernels, byte[][] backends);

  private static native void closeModule(long module);

  private static native byte[][] methodNames(long module);

  private static native ValueInfo[] describe(long module, byte[] method, boolean isInput);

  private static native Object[] run(
      long module,
      byte[] method,
      Object[] inputs,
      int[] kinds,
      int[] dtypes,
      int[][] sizes,
      int[] kept);

  private static native byte[][] relations(long module, byte[] method);

  private static native long memoryInUse(long module);

  private static native void load(long module, byte[] method, boolean isLoad);

  private static native void setOutput(long module, byte[] method, int index, ByteBuffer to);

  private static native void startTrace(long module, int values, long bytes, long valueBytes);

  private static native void stopTrace(long module);

  private static native void saveTrace(long module, byte[] path);

  private static native byte[] failureReport(long module);

  private static native void cancel(long module);

  private static native long copy(long module, boolean withState);

  private static native byte[] snapshot(long module);

  private static native void restore(long module, byte[] snapshot);

  private static native void resetState(long module);

  private static native void seed(long module, long seed);
}
