package dev.rushlight;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;

/** The native library: librushlight, through rushlight_jni. */
public final class Rushlight {
  /** Codes that callers decide by; rushlight.h has all. */
  public static final int INVALID_STATE = 0x02;

  public static final int NOT_SUPPORTED = 0x10;
  public static final int INVALID_ARGUMENT = 0x12;
  public static final int NOT_FOUND = 0x20;
  public static final int ACCESS_FAILED = 0x22;
  public static final int INVALID_PROGRAM = 0x23;
  public static final int OUT_OF_RESOURCES = 0x25;
  public static final int CANCELLED = 0x80;

  static {
    String path = System.getProperty("rushlight.library");
    if (path != null) {
      System.load(path);
    } else {
      System.loadLibrary("rushlight_jni");
    }
  }

  private Rushlight() {}

  /** A text as the native library takes it: UTF-8 and a NUL. */
  static byte[] text(String text) {
    return (text + "\0").getBytes(StandardCharsets.UTF_8);
  }

  static String text(byte[] text) {
    return new String(text, StandardCharsets.UTF_8);
  }

  /** A path, or null. */
  static byte[] path(Path path) {
    return path == null ? null : text(path.toString());
  }

  static byte[][] paths(List<Path> paths) {
    byte[][] texts = new byte[paths.size()][];
    for (int i = 0; i < texts.length; i++) texts[i] = path(paths.get(i));
    return texts;
  }

  /** Loads the library, from the path in the property {@code rushlight.library} if it is set. */
  static void load() {}

  /** The release of Rushlight. */
  public static native String version();
}
