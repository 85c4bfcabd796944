// swift-tools-version:5.7
// Compiled nowhere here: see Sources/Rushlight/Rushlight.swift.
//
//   swift build -Xcc -I<prefix>/include -Xlinker -L<prefix>/lib
import PackageDescription

let package = Package(
  name: "Rushlight",
  platforms: [.macOS(.v12), .iOS(.v15)],
  products: [.library(name: "Rushlight", targets: ["Rushlight"])],
  targets: [
    .systemLibrary(name: "CRushlight"),
    .target(name: "Rushlight", dependencies: ["CRushlight"]),
  ]
)
