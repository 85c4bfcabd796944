package dev.rushlight;

import java.nio.charset.StandardCharsets;

/** What a call failed with. */
public final class RushlightException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final int code;

  RushlightException(int code, String message) {
    super(message);
    this.code = code;
  }

  // Called by the native library, whose texts are UTF-8.
  RushlightException(int code, byte[] message) {
    this(code, new String(message, StandardCharsets.UTF_8));
  }

  /** The code, such as {@link Rushlight#INVALID_ARGUMENT}. */
  public int code() {
    return code;
  }
}
