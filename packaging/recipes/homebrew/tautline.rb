# Tested: Ruby parses the formula, and a stand-in for Homebrew's Formula runs its install and test commands on Linux
# (tests/ship/distro/formula.rb). Not tested: Homebrew itself, which was not available, and macOS.
#
# There is no release to fetch, so the formula builds only the newest commit.
class Tautline < Formula
  desc "ZeroMQ messaging in memory-safe Rust, in the place of libzmq"
  homepage "https://github.com/tautline/tautline"
  license any_of: ["MIT", "Apache-2.0"]
  head "https://github.com/tautline/tautline.git", branch: "main"

  keg_only "it has the files of zeromq"

  depends_on "rust" => :build
  depends_on "pkgconf" => :test
  depends_on :linux

  def install
    system "make", "build"
    system "make", "install", "PREFIX=#{prefix}"
  end

  test do
    (testpath/"test.c").write <<~C
      #include <zmq.h>
      int main(void)
      {
          void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_REP);
          int bad = zmq_bind(socket, "tcp://127.0.0.1:*") != 0;
          return zmq_close(socket) != 0 || zmq_ctx_term(context) != 0 || bad;
      }
    C
    ENV["PKG_CONFIG_PATH"] = "#{lib}/pkgconfig"
    flags = shell_output("pkg-config --cflags --libs libzmq").chomp.split
    system ENV.cc, "test.c", "-o", "test", *flags, "-Wl,-rpath,#{lib}"
    system "./test"
  end
end
