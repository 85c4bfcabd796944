//! Modules: they give the bits that they give in Python, and refuse what does not fit.

mod common;

use std::io::{self, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;

use common::{bytes, data, fails, golden, numbers};
use rushlight::{
    Code, DType, Error, Kind, Module, ModuleOptions, Tensor, TensorView, TraceOptions, TraceValues,
    Value,
};

#[test]
fn version_and_abi() {
    assert!(!rushlight::version().is_empty());
    rushlight::check_version().unwrap();
}

#[test]
fn outputs_are_those_of_python() {
    for backend in ["portable", "cpu", "xnnpack"] {
        let options = ModuleOptions { threads: 2, ..Default::default() };
        let path = data(format!("net_{backend}.pte"));
        let mut module = Module::open_with(path, &options).unwrap();
        for batch in [2, 9, 4, 2] {
            let x: Vec<f32> = numbers(&format!("x_{batch}.bin"));
            let mask: Vec<f32> = numbers(&format!("mask_{batch}.bin"));
            let inputs = [
                TensorView::new(&x, &[batch, 6]).unwrap().into(),
                TensorView::new(&mask, &[batch]).unwrap().into(),
            ];
            let outputs = module.run("forward", &inputs).unwrap();
            assert_eq!(outputs.len(), 4);
            for i in 0..4 {
                let y = outputs.tensor(i).unwrap().to_tensor().unwrap();
                assert_eq!(
                    y.as_bytes(),
                    bytes(&format!("{backend}_{batch}_{i}.bin")),
                    "{backend} {i}"
                );
            }
            let flags = outputs.tensor(2).unwrap();
            assert_eq!((flags.dtype(), flags.sizes()), (DType::Bool, &[batch, 5][..]));
            assert_eq!(flags.to_bools().unwrap().len(), flags.len());
            assert_eq!(outputs.tensor(1).unwrap().as_slice::<i64>().unwrap().len(), batch as usize);
        }
    }
}

#[test]
fn any_strides_are_read() {
    let mut module = Module::open(data("net_cpu.pte")).unwrap();
    let x: Vec<f32> = numbers("x_4.bin");
    let mask: Vec<f32> = numbers("mask_4.bin");
    let mask_view = TensorView::new(&mask, &[4]).unwrap();
    let by_columns: Vec<f32> = (0..24).map(|i| x[i % 4 * 6 + i / 4]).collect();
    let reversed: Vec<f32> = x.iter().rev().copied().collect();
    let wide: Vec<f32> = x.chunks(6).flat_map(|row| [row, &[9.0; 3]].concat()).collect();
    for (elements, first, strides) in
        [(&by_columns, 0, [1, 4]), (&reversed, 23, [-6, -1]), (&wide, 0, [9, 1])]
    {
        let view = TensorView::with_strides(elements, first, &[4, 6], &strides).unwrap();
        assert_eq!(view.to_vec::<f32>().unwrap(), x);
        let outputs = module.run("forward", &[view.into(), mask_view.into()]).unwrap();
        let y = outputs.tensor(0).unwrap().to_tensor().unwrap();
        assert_eq!(y.as_bytes(), bytes("cpu_4_0.bin"));
    }
    let unaligned =
        [&[0], x.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>().as_slice()].concat();
    let view = TensorView::from_bytes(DType::Float32, &unaligned[1..], &[4, 6]).unwrap();
    let outputs = module.run("forward", &[view.into(), mask_view.into()]).unwrap();
    assert_eq!(outputs.tensor(0).unwrap().to_tensor().unwrap().as_bytes(), bytes("cpu_4_0.bin"));
}

#[test]
fn outputs_that_are_not_row_major() {
    let mut module = Module::open(data("image.pte")).unwrap();
    let x: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let view = TensorView::new(&x, &[1, 2, 3, 4]).unwrap();
    let outputs = module.run("forward", &[view.into()]).unwrap();
    let y = outputs.tensor(0).unwrap();
    assert!(!y.is_row_major() && y.strides()[1] == 1, "{:?}", y.strides());
    fails(y.as_slice::<f32>(), Code::InvalidArgument, "use to_vec()");
    let doubled: Vec<f32> = x.iter().map(|v| v * 2.0).collect();
    assert_eq!(y.to_vec::<f32>().unwrap(), doubled);
    assert_eq!(y.to_tensor().unwrap().as_slice::<f32>().unwrap(), doubled);
}

#[test]
fn views_are_checked() {
    let x = [0.0_f32; 6];
    fails(TensorView::new(&x, &[2, 4]), Code::InvalidArgument, "have 32");
    fails(TensorView::new(&x, &[-2, -3]), Code::InvalidArgument, "-2 is negative");
    fails(TensorView::new(&x, &[1; 17]), Code::InvalidArgument, "17 dimensions");
    fails(Tensor::zeros(DType::Int8, &[i32::MAX; 3]), Code::InvalidArgument, "no memory has");
    fails(Tensor::zeros(DType::Int8, &[0, i32::MAX, 4]), Code::InvalidArgument, "31 bits");
    fails(TensorView::with_strides(&x, 0, &[2, 3], &[4, 1]), Code::InvalidArgument, "to 6");
    fails(TensorView::with_strides(&x, 0, &[2], &[-1]), Code::InvalidArgument, "element -1");
    fails(TensorView::with_strides(&x, 7, &[1], &[1]), Code::InvalidArgument, "there are 6");
    fails(TensorView::with_strides(&x, 0, &[2], &[1, 1]), Code::InvalidArgument, "2 strides");
    let reach = TensorView::with_strides(&x, 0, &[i32::MAX; 2], &[i32::MAX; 2]);
    fails(reach, Code::InvalidArgument, "");
    let view = TensorView::new(&x, &[2, 3]).unwrap();
    fails(view.as_slice::<i32>(), Code::InvalidArgument, "float32, not int32");
    let empty = TensorView::new::<f32>(&[], &[0, 3]).unwrap();
    assert!(empty.is_empty() && empty.as_slice::<f32>().unwrap().is_empty());
    assert!(TensorView::with_strides(&x, 0, &[0, 3], &[1, 1])
        .unwrap()
        .to_vec::<f32>()
        .unwrap()
        .is_empty());
    let mut tensor = Tensor::new(&x, &[3, 2]).unwrap();
    tensor.as_mut_slice::<f32>().unwrap()[5] = 7.0;
    assert_eq!(tensor.view().to_vec::<f32>().unwrap()[5], 7.0);
    fails(tensor.as_mut_slice::<u8>().map(|_| ()), Code::InvalidArgument, "not uint8");
}

#[test]
fn descriptions() {
    let module = Module::open(data("net_portable.pte")).unwrap();
    assert_eq!(module.methods().unwrap(), ["forward"]);
    let inputs = module.inputs("forward").unwrap();
    let (x, mask) = (&inputs[0], &inputs[1]);
    assert_eq!((x.name.as_str(), mask.name.as_str()), ("x", "mask"));
    assert_eq!((x.kind, x.dtype), (Kind::Tensor, Some(DType::Float32)));
    assert_eq!((&x.min_sizes[..], &x.max_sizes[..]), (&[2, 6][..], &[9, 6][..]));
    assert!(x.symbols[0] == mask.symbols[0] && x.symbols[0] != 0 && x.symbols[1] == 0);
    assert_eq!((x.bytes, &x.dim_order[..]), (Some(9 * 6 * 4), &[0, 1][..]));
    let relations = module.relations("forward").unwrap();
    assert!(relations.iter().any(|r| r.contains("'x'") && r.contains("'mask'")), "{relations:?}");
    fails(module.relations("backward"), Code::InvalidArgument, "backward");
    let outputs = module.outputs("forward").unwrap();
    let dtypes: Vec<DType> = outputs.iter().filter_map(|output| output.dtype).collect();
    assert_eq!(dtypes, [DType::Float32, DType::Int64, DType::Bool, DType::Float16]);
    let info = module.method("forward").unwrap();
    assert!((info.inputs, info.outputs, info.is_loaded) == (2, 4, false) && info.instructions > 0);
    assert_eq!(module.memory_in_use().unwrap(), 0);
    fails(module.inputs("backward"), Code::InvalidArgument, "backward");
    fails(module.method("for\0ward"), Code::InvalidArgument, "byte 3 is a NUL");
}

#[test]
fn wrong_inputs_are_refused() {
    let mut module = Module::open(data("net_portable.pte")).unwrap();
    let zeros = |sizes: &[i32]| Tensor::zeros(DType::Float32, sizes).unwrap();
    let (x, mask, mut check) = (zeros(&[4, 6]), zeros(&[4]), Vec::new());
    check.push((zeros(&[1, 6]), zeros(&[1]), "input 'x': size 0 is 1"));
    check.push((zeros(&[10, 6]), zeros(&[10]), "size 0 is 10"));
    check.push((zeros(&[4, 6]), zeros(&[3]), "'mask': size 0 is 3"));
    check.push((zeros(&[6]), zeros(&[4]), "got 1 dimensions, the method takes 2"));
    let float64 = Tensor::zeros(DType::Float64, &[4, 6]).unwrap();
    check.push((float64, zeros(&[4]), "got float64, the method takes float32"));
    for (x, mask, part) in &check {
        let result = module.run("forward", &[x.into(), mask.into()]);
        let code = result.err().map(|error| (error.code(), error.to_string()));
        let (code, text) = code.expect(part);
        assert!(matches!(code, Code::InvalidArgument | Code::NotSupported), "{code:?}");
        assert!(text.contains(part), "{text}");
    }
    let inputs = [Value::Int(3), (&mask).into()];
    fails(module.run("forward", &inputs), Code::InvalidArgument, "got an Int");
    fails(module.run("forward", &[(&x).into()]), Code::InvalidArgument, "got 1 inputs");
    fails(module.run("backward", &[]), Code::InvalidArgument, "backward");
    fails(module.run("forward", &[Value::List, (&mask).into()]), Code::InvalidArgument, "kind");
    let outputs = module.run("forward", &[(&x).into(), (&mask).into()]).unwrap();
    fails(outputs.get(4), Code::InvalidArgument, "there is no output 4");
}

#[test]
fn scalars() {
    let mut module = Module::open(data("scaled.pte")).unwrap();
    let x = Tensor::new(&[1.0_f32; 3], &[3]).unwrap();
    let inputs = [(&x).into(), 2_i64.into(), true.into(), "up".into()];
    let outputs = module.run("forward", &inputs).unwrap();
    assert_eq!(outputs.tensor(0).unwrap().as_slice::<f32>().unwrap(), [2.0; 3]);
    let other = [(&x).into(), 2_i64.into(), false.into(), "up".into()];
    fails(module.run("forward", &other), Code::InvalidArgument, "exported with another value");
}

#[test]
fn files_that_are_no_programs() {
    fails(Module::open("no/file.pte"), Code::AccessFailed, "no such file");
    fails(Module::open("no\0file"), Code::InvalidArgument, "NUL");
    let whole = bytes("net_cpu.pte");
    for length in [0, 1, 8, 100, whole.len() / 2, whole.len() - 1] {
        let cut = whole[..length].to_vec();
        let result = Module::from_bytes(cut, &ModuleOptions::default());
        let code = result.map(|_| ()).expect_err("it is cut").code();
        assert!(
            matches!(code, Code::InvalidProgram | Code::InvalidArgument | Code::AccessFailed),
            "{code:?}"
        );
    }
    for place in (0..whole.len()).step_by(whole.len() / 64) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x55;
        // It is refused, or runs: it does not crash.
        if let Ok(mut module) = Module::from_bytes(damaged, &ModuleOptions::default()) {
            let x = Tensor::zeros(DType::Float32, &[4, 6]).unwrap();
            let mask = Tensor::zeros(DType::Float32, &[4]).unwrap();
            let _ = module.run("forward", &[(&x).into(), (&mask).into()]).map(|_| ());
        }
    }
}

#[test]
fn programs_in_memory() {
    let x = Tensor::new(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap();
    let file = std::fs::read(golden("add.pte")).unwrap();
    let options = ModuleOptions::default();
    let mut module = Module::from_bytes(file.clone(), &options).unwrap();
    let mut copy = module.try_clone().unwrap();
    let check = |module: &mut Module| {
        let outputs = module.run("forward", &[(&x).into(), (&x).into()]).unwrap();
        let y = outputs.tensor(0).unwrap();
        assert_eq!(y.as_slice::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    };
    check(&mut module);
    module.close().unwrap();
    check(&mut copy); // keeps the memory
    check(&mut Module::from_bytes(std::sync::Arc::<[u8]>::from(file), &options).unwrap());
}

#[test]
fn outputs_in_memory_of_the_caller() {
    for backend in ["portable", "cpu"] {
        let mut module = Module::open(data(format!("net_{backend}.pte"))).unwrap();
        let (x, mask) = (numbers::<f32>("x_4.bin"), numbers::<f32>("mask_4.bin"));
        let inputs = [
            TensorView::new(&x, &[4, 6]).unwrap().into(),
            TensorView::new(&mask, &[4]).unwrap().into(),
        ];
        let wanted: Vec<f32> = numbers(&format!("{backend}_4_0.bin"));
        let (mut y, mut indices) = (vec![f32::NAN; 45], Tensor::zeros(DType::Int64, &[9]).unwrap());
        let memory = [(0, y.as_mut_slice().into()), (1, (&mut indices).into())];
        let outputs = module.run_into("forward", &inputs, memory).unwrap();
        let view = outputs.tensor(0).unwrap();
        assert_eq!((view.sizes(), view.as_slice::<f32>().unwrap()), (&[4, 5][..], &wanted[..]));
        let place = view.as_slice::<f32>().unwrap().as_ptr();
        assert_eq!(place, y.as_ptr());
        assert_eq!(&y[..20], wanted);
        assert_eq!(
            indices.as_slice::<i64>().unwrap()[..4],
            numbers::<i64>(&format!("{backend}_4_1.bin"))
        );
        // The memory is the caller's again.
        let before = y.clone();
        let outputs = module.run("forward", &inputs).unwrap();
        assert_eq!(outputs.tensor(0).unwrap().as_slice::<f32>().unwrap(), wanted);
        assert_eq!(before[..20], y[..20]);
        let mut small = [0.0_f32; 4];
        let memory = [(0, small.as_mut_slice().into())];
        fails(module.run_into("forward", &inputs, memory), Code::InvalidArgument, "");
        let mut other = [0_i32; 40];
        let memory = [(0, other.as_mut_slice().into())];
        fails(
            module.run_into("forward", &inputs, memory),
            Code::InvalidArgument,
            "its memory has int32",
        );
        let mut bytes = vec![0_u8; 400];
        let (_, misaligned) = bytes.split_at_mut(1);
        let memory = [(1, misaligned.into())];
        let result = module.run_into("forward", &inputs, memory).map(|_| ());
        assert!(result.is_ok() || result.is_err_and(|e| e.to_string().contains("not aligned")));
        let (first, second) = y.split_at_mut(20);
        let memory = [(0, first.into()), (0, second.into())];
        fails(module.run_into("forward", &inputs, memory), Code::InvalidArgument, "twice");
        let memory = [(9, small.as_mut_slice().into())];
        fails(module.run_into("forward", &inputs, memory), Code::InvalidArgument, "output 9");
        assert_eq!(module.run("forward", &inputs).unwrap().len(), 4);
    }
}

fn count(module: &mut Module) -> f32 {
    let one = Tensor::new(&[1.0_f32; 3], &[3]).unwrap();
    let outputs = module.run("forward", &[(&one).into()]).unwrap();
    let y = outputs.tensor(0).unwrap();
    y.as_slice::<f32>().unwrap()[0]
}

#[test]
fn state() {
    let mut module = Module::open(data("counter.pte")).unwrap();
    assert_eq!([count(&mut module), count(&mut module), count(&mut module)], [1.0, 2.0, 3.0]);
    let states = module.states().unwrap();
    assert_eq!(
        (states.len(), states[0].name.as_str(), &states[0].sizes[..]),
        (1, "count", &[3][..])
    );
    assert_eq!(module.state(0).unwrap().as_slice::<f32>().unwrap(), [3.0; 3]);
    fails(module.state(1), Code::InvalidArgument, "there is no state 1");
    let (mut fork, mut copy) = (module.fork().unwrap(), module.try_clone().unwrap());
    assert_eq!((count(&mut fork), count(&mut copy)), (4.0, 1.0));
    let saved = module.snapshot().unwrap();
    assert_eq!(count(&mut module), 4.0);
    fork.restore(&saved).unwrap();
    assert_eq!(count(&mut fork), 4.0);
    fails(fork.restore(&saved[1..]), Code::InvalidArgument, "");
    fails(fork.restore(&[]), Code::InvalidArgument, "");
    module.reset_state().unwrap();
    assert_eq!(count(&mut module), 1.0);
    drop(module);
    assert_eq!(count(&mut fork), 5.0);
}

#[test]
fn seeds() {
    let mut module = Module::open(data("noise.pte")).unwrap();
    let zeros = Tensor::zeros(DType::Float32, &[4]).unwrap();
    module.seed(7).unwrap();
    let outputs = module.run("forward", &[(&zeros).into()]).unwrap();
    assert_eq!(outputs.tensor(0).unwrap().to_vec::<f32>().unwrap(), numbers::<f32>("noise_7.bin"));
}

#[test]
fn kernels_of_libraries() {
    let path = data("twice.pte");
    let x = Tensor::new(&[0.0_f32, 1.0, 2.0, 3.0, 4.0, -5.5], &[2, 3]).unwrap();
    let mut lacking = Module::open(&path).unwrap();
    fails(lacking.run("forward", &[(&x).into()]), Code::OperatorMissing, "acme::twice.out");
    let libraries = ["RUSHLIGHT_TEST_KERNELS", "RUSHLIGHT_TEST_RUST_KERNELS"];
    for name in libraries.map(|name| std::env::var_os(name).expect(name)) {
        let options = ModuleOptions { kernel_libraries: vec![name.into()], ..Default::default() };
        let mut module = Module::open_with(&path, &options).unwrap();
        let mut copy = module.fork().unwrap();
        for module in [&mut module, &mut copy] {
            let outputs = module.run("forward", &[(&x).into()]).unwrap();
            let y = outputs.tensor(0).unwrap();
            assert_eq!(y.as_slice::<f32>().unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, -11.0]);
        }
    }
    let both = libraries.map(|name| std::env::var_os(name).expect(name).into()).to_vec();
    let options = ModuleOptions { kernel_libraries: both, ..Default::default() };
    let code = Code::RegistrationAlreadyRegistered;
    fails(Module::open_with(&path, &options), code, "acme::twice.out");
    let options = ModuleOptions { kernel_libraries: vec!["no.so".into()], ..Default::default() };
    fails(Module::open_with(&path, &options), Code::AccessFailed, "no.so");
}

// Each line of the table has a part of the error, and libraries.
#[test]
fn bad_kernels() {
    let path = data("twice.pte");
    let x = Tensor::new(&[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0], &[2, 3]).unwrap();
    let run = |libraries: Vec<PathBuf>| -> Result<Vec<f32>, Error> {
        let options = ModuleOptions { kernel_libraries: libraries, ..Default::default() };
        let mut module = Module::open_with(&path, &options)?;
        let outputs = module.run("forward", &[(&x).into()])?;
        outputs.tensor(0)?.to_vec::<f32>()
    };
    let table = String::from_utf8(bytes("bad_kernels.tsv")).unwrap();
    assert!(table.lines().count() >= 7);
    for line in table.lines() {
        let (part, libraries) = line.split_once('\t').unwrap();
        let libraries = libraries.split(';').filter(|path| !path.is_empty()).map(PathBuf::from);
        let error = run(libraries.collect()).expect_err(part);
        assert!(error.to_string().contains(part), "{error}");
    }
    let good = std::env::var_os("RUSHLIGHT_TEST_KERNELS").unwrap().into();
    assert_eq!(run(vec![good]).unwrap(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
}

struct Failing;

impl Write for Failing {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("the disk is full"))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Panicking;

impl Write for Panicking {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        panic!("the writer's own")
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn traces() {
    let mut module = Module::open(data("counter.pte")).unwrap();
    fails(module.trace_write(&mut Vec::new()), Code::InvalidState, "");
    let options = TraceOptions { values: TraceValues::All, ..Default::default() };
    module.trace_start(&options).unwrap();
    count(&mut module);
    let path = data("counter_rust.etdp");
    module.trace_save(&path).unwrap();
    module.trace_stop().unwrap();
    let mut written = Vec::new();
    module.trace_write(&mut written).unwrap();
    assert!(written.len() > 100);
    assert_eq!(std::fs::read(&path).unwrap(), written);
    let mut values = Vec::new();
    module.trace_values(&mut values).unwrap();
    assert!(!values.is_empty());
    fails(module.trace_write(&mut Failing), Code::AccessFailed, "the disk is full");
    let panicked = catch_unwind(AssertUnwindSafe(|| module.trace_write(&mut Panicking)));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"the writer's own"));
    assert_eq!(count(&mut module), 2.0);
    fails(module.trace_save("no/folder/trace"), Code::AccessFailed, "");
}

#[test]
fn failure_reports() {
    let options = ModuleOptions { reports_failures: true, ..Default::default() };
    let mut module = Module::open_with(data("counter.pte"), &options).unwrap();
    assert_eq!(module.failure_report().unwrap(), None);
    assert!(module.run("forward", &[]).is_err());
    let report = module.failure_report().unwrap().unwrap();
    std::fs::write(data("counter_rust.rlfr"), report).unwrap();
    let without = Module::open(data("counter.pte")).unwrap();
    fails(without.failure_report(), Code::InvalidState, "");
}

#[test]
fn limits() {
    let options = ModuleOptions { memory_limit: 64, ..Default::default() };
    let mut module = Module::open_with(data("net_cpu.pte"), &options).unwrap();
    fails(module.load("forward"), Code::OutOfResources, "");
    let mut module = Module::open(data("net_cpu.pte")).unwrap();
    module.load("forward").unwrap();
    assert!(module.memory_in_use().unwrap() > 0);
    module.unload("forward").unwrap();
    assert_eq!(module.memory_in_use().unwrap(), 0);
}
