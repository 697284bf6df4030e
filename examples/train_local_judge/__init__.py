"""How the weights of ``LocalJudge`` were trained: from open texts to an int8 ONNX file."""
