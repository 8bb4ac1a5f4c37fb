# SPDX-License-Identifier: Apache-2.0
# Welkin for Spack 1.x. docs/guide/spack.md says how to use it; tests/e2e/install/spack_test.py
# compares it with tools/setup.sh and CMake.
import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import (
    EnvironmentModifications,
    conflicts,
    default_args,
    depends_on,
    extends,
    install_tree,
    join_path,
    license,
    requires,
    run_after,
    symlink,
    variant,
    version,
    when,
    which,
)


class Welkin(CMakePackage, CudaPackage):
    """Training of deep networks on scientific fields, native C++ on LibTorch."""

    # No archive of a release is published: the source is what is committed in the clone that
    # this file lies in. `spack dev-build` and `spack develop` take its files as they are.
    git = pathlib.Path(__file__).resolve().parents[6].as_uri()

    license("Apache-2.0")

    version("main", branch="main")

    variant("ingest", default=True, description="Read GRIB and netCDF (welkin data ingest)")
    variant("python", default=True, description="Install the Python package (import welkin)")
    variant(
        "dygraphs",
        default="/usr/share/javascript/dygraphs",
        values=lambda value: value.startswith("/"),
        multi=False,
        sticky=True,
        description="Folder of dygraph.min.js, dygraph.min.css and copyright",
    )

    generator("ninja")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("binutils", type="build")  # objcopy

    # The program is linked to torch's C++ libraries: this version alone has the right ABI.
    # Ranks on CPUs talk by Gloo. Any prefix with the wheel of PyPI does as an external.
    with default_args(type=("build", "link", "run")):
        depends_on("python@3.10:")
        depends_on("py-torch@2.11.0 +distributed+gloo+openmp")
        depends_on("py-torch ~cuda", when="~cuda")
        depends_on("py-torch +cuda+nccl", when="+cuda")
    for _arch in CudaPackage.cuda_arch_values:
        depends_on(f"py-torch cuda_arch={_arch}", when=f"+cuda cuda_arch={_arch}")

    extends("python", when="+python")

    # cmake/WelkinStaticLibraries.cmake takes their static archives into a shared library.
    # They are position independent by a variant where there is one, and by a flag elsewhere.
    depends_on("hdf5@1.10:1 +szip~mpi")
    depends_on("zlib +pic")
    depends_on("libaec cflags=-fPIC")
    depends_on("libyaml cflags=-fPIC")
    depends_on("c-blosc@1.21: cflags=-fPIC")
    depends_on("snappy ~shared+pic")
    depends_on("lz4 libs=static +pic")
    depends_on("zstd libs=static cflags=-fPIC")
    depends_on("libpng libs=static +pic")
    depends_on("libsodium cflags=-fPIC")

    # Headers alone
    with default_args(type="build"):
        depends_on("xxhash")
        depends_on("cli11")
        depends_on("nlohmann-json")

    with when("+ingest"):
        depends_on("eccodes +shared")
        depends_on("netcdf-c +shared~mpi")

    # As the wheel of torch 2.11.0 is built for CUDA 13, so are the kernels.
    depends_on("cuda@13", when="+cuda")

    requires("platform=linux", msg="Welkin runs on Linux")
    conflicts("%gcc@:11", msg="Welkin is compiled by GCC 12 or newer")
    conflicts(
        "cuda_arch=none",
        when="+cuda",
        msg="Name the compute capabilities of your GPUs, as py-torch wants it: cuda_arch=90",
    )

    sanity_check_is_file = ["bin/welkin", "lib/libwelkin.so", "libexec/welkin-check-files"]

    def cmake_args(self):
        spec = self.spec
        args = [
            self.define("WELKIN_PYTHON", spec["python"].command.path),
            self.define("WELKIN_DYGRAPHS", spec.variants["dygraphs"].value),
            self.define("WELKIN_CCACHE", False),
            self.define_from_variant("WELKIN_BUILD_INGEST", "ingest"),
            self.define_from_variant("WELKIN_BUILD_PYTHON", "python"),
            self.define_from_variant("WELKIN_CUDA", "cuda"),
        ]
        if spec.satisfies("+cuda"):
            args.append(self.define("WELKIN_NVCC", spec["cuda"].prefix.bin.nvcc))
            args.append(self.define("WELKIN_CUDA_ARCHITECTURES", spec.variants["cuda_arch"].value))
            # A torch that Spack built has its NCCL from Spack, the wheel has one of its own.
            if spec.satisfies("^nccl"):
                args.append(self.define("WELKIN_NCCL_INCLUDE", spec["nccl"].prefix.include))
        return args

    @run_after("install", when="+python")
    def install_python(self):
        """As in the wheel: the package's folder is the prefix, here by links."""
        package = join_path(self.prefix, self.spec["python"].package.purelib, "welkin")
        install_tree(join_path(self.stage.source_path, "python", "welkin"), package)
        for name in ("bin", "include", "lib", "libexec", "share"):
            symlink(join_path(self.prefix, name), join_path(package, name))

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.set("WELKIN_TORCH", self.spec["py-torch"].prefix)

    def test_version(self):
        """the program finds the torch that it was built with"""
        welkin = which(join_path(self.prefix.bin, "welkin"), required=True)
        assert welkin("--version", output=str.split).startswith("welkin ")

    def test_training(self):
        """a small model is trained on made-up samples"""
        welkin = which(join_path(self.prefix.bin, "welkin"), required=True)
        config = {
            "dataset": "nbody",
            "data_loader_config": "synthetic",
            "data_size": 8,
            "box_size": "[16,16]",
            "Nsamples": 4,
            "Nsamples_val": 2,
            "N_in_channels": 2,
            "N_out_channels": 1,
            "global_batch_size": 2,
            "model": "unet3d",
            "width": 4,
            "scales": 2,
        }
        keys = [word for key, value in config.items() for word in ("--set", f"{key}={value}")]
        welkin("train", *keys, "--num_epochs", "1", "--device", "cpu", "--log_root", "logs")
