import evenfeed as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
strategy = tf.distribute.MirroredStrategy()

dataset = tf.data.Dataset.range(10).shuffle(10, seed=1).batch(4)
for step in strategy.experimental_distribute_dataset(dataset):
    squares = strategy.run(tf.square, args=(step,))
    rows = [part.tolist() for part in strategy.experimental_local_results(squares)]
    print("on the four replicas:", rows, "sum:", strategy.reduce("SUM", squares, axis=0))
