# Runs the install and test commands of a Homebrew formula in the folder of the sources, with a stand-in for Formula:
# ruby formula.rb FORMULA.rb PREFIX
require "open3"
require "pathname"
require "tmpdir"

def ENV.cc = fetch("CC", "cc")

class Pathname
  alias / join
end

class Formula
  class << self
    attr_reader :said, :tested

    def test(&block) = @tested = block

    %i[desc homepage license head keg_only depends_on].each do |word|
      define_method(word) { |*words, **options| (@said ||= {})[word] = [words, options] }
    end
  end

  attr_reader :prefix, :testpath

  def initialize(prefix, testpath)
    @prefix = Pathname(prefix)
    @testpath = Pathname(testpath)
  end

  def lib = prefix/"lib"

  def system(*command) = Kernel.system(*command.map(&:to_s), exception: true)

  def shell_output(command)
    output, status = Open3.capture2(command)
    status.success? ? output : raise("#{command}: #{status}")
  end
end

file, prefix = ARGV
load file
%i[desc homepage license head].each { |word| Tautline.said.fetch(word) }
raise "desc is longer than 80 characters" if Tautline.said[:desc][0][0].length > 80

Dir.mktmpdir do |folder|
  formula = Tautline.new(prefix, folder)
  formula.install
  Dir.chdir(folder) { formula.instance_eval(&Tautline.tested) }
end
puts "#{prefix}: installed and tested"
