package dev.rushlight;

/** A native object that is closed once; closing it again does nothing. */
abstract class Handle implements AutoCloseable {
  private long handle;

  Handle(long handle) {
    this.handle = handle;
  }

  /** The handle; a closed one is refused by the library, whose handles never come back. */
  final synchronized long handle() {
    if (handle == 0) {
      throw new RushlightException(
          Rushlight.INVALID_STATE, "the " + getClass().getSimpleName() + " is closed");
    }
    return handle;
  }

  @Override
  public final synchronized void close() {
    if (handle == 0) return;
    closeHandle(handle);
    handle = 0;
  }

  abstract void closeHandle(long handle);
}
