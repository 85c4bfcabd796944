//! Runs a program on zeros: `cargo run --example run -- model.pte`.

use rushlight::{Kind, Module, Tensor, Value};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give the path of a program (.pte)")?;
    let mut module = Module::open(path)?;
    for method in module.methods()? {
        let mut tensors = Vec::new();
        for input in module.inputs(&method)? {
            println!("{method}: {} is {:?} {:?}", input.name, input.dtype, input.max_sizes);
            match (input.kind, input.dtype) {
                (Kind::Tensor, Some(dtype)) => {
                    tensors.push(Tensor::zeros(dtype, &input.min_sizes)?)
                }
                _ => return Err(format!("{method}: {} is no tensor", input.name).into()),
            }
        }
        let inputs: Vec<Value<'_>> = tensors.iter().map(Value::from).collect();
        let outputs = module.run(&method, &inputs)?;
        for index in 0..outputs.len() {
            println!("{method}: output {index} is {:?}", outputs.get(index)?);
        }
    }
    Ok(())
}
